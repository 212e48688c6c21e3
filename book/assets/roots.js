// Roots without a gap behind them.
//
// Chromium makes the box of a root as wide as its widest sign would need, so a comma behind a small root
// stands apart. What is too wide is measured and taken back. Without JavaScript the gap stays.
"use strict";

document.fonts.ready.then(() => {
    const right = node => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return range.getBoundingClientRect().right;
    };
    // What is folded has no size until it is opened.
    const close = () => {
        const gaps = [];
        for (const root of document.querySelectorAll("main msqrt:not([style])")) {
            const gap = root.getBoundingClientRect().right - right(root.lastElementChild);
            if (gap > 0) gaps.push([root, gap / parseFloat(getComputedStyle(root).fontSize)]);
        }
        for (const [root, gap] of gaps) root.style.marginInlineEnd = `-${gap.toFixed(3)}em`;
    };
    close();
    document.addEventListener("toggle", close, true);
});
