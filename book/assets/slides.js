// Shows the slides of a page one at a time, and lays them out as sheets to print.
"use strict";

{
    const root = document.documentElement;
    const sheets = document.querySelector('link[href*="assets/slides"]');
    const slides = [...document.querySelectorAll("main .slide")];
    let shown = 0;

    const show = (number) => {
        shown = Math.min(Math.max(number, 0), slides.length - 1);
        slides.forEach((slide, nth) => slide.classList.toggle("shown", nth === shown));
    };
    const fit = () => root.style.setProperty("--zoom", Math.min(innerWidth / 1280, innerHeight / 720));
    const presenting = () => root.classList.contains("presenting");
    const present = (yes) => {
        root.classList.toggle("presenting", yes);
        sheets.media = yes ? "all" : "print";
        if (yes) root.requestFullscreen?.().catch(() => {});
        else if (document.fullscreenElement) document.exitFullscreen();
    };
    const steps = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };

    sheets.media = "print";
    if (location.pathname.endsWith("/print.html")) {
        // The book on paper goes without them.
        slides.forEach((slide) => slide.remove());
    } else if (slides.length) {
        const button = document.createElement("button");
        button.className = "present";
        button.textContent = "Present these slides (arrow keys, Esc ends)";
        button.addEventListener("click", () => {
            show(0);
            fit();
            present(true);
        });
        slides[0].before(button);
        addEventListener("resize", fit);
        document.addEventListener("fullscreenchange", () => document.fullscreenElement || present(false));
        // Before mdBook's own keys, which turn to the next chapter.
        addEventListener("keydown", (event) => {
            if (!presenting() || event.ctrlKey || event.metaKey || event.altKey) return;
            if (event.key === "Escape") present(false);
            else if (event.key in steps) show(shown + steps[event.key]);
            else return;
            event.preventDefault();
            event.stopImmediatePropagation();
        }, true);
    }
}
