// What the widgets of the book share: they find their place, draw with SVG, and have sliders.
//
// A page holds <div class="widget" data-widget="NAME"> with a figure in it. Without JavaScript the
// figure is all there is. With it, the figure gives way to the widget. Nothing is loaded.
"use strict";

const widget = {
    // Okabe and Ito's colours, light enough for a dark page and dark enough for a light one.
    blue: "#3d8fc6",
    orange: "#d98a00",
    green: "#0a9e76",

    // Puts a widget into every place of this name.
    mount(name, build) {
        for (const place of document.querySelectorAll(`.widget[data-widget="${name}"]`)) {
            const panel = document.createElement("div");
            build(panel, place.dataset);
            // The caption stays, and asks what the picture asked.
            const figure = place.querySelector("figure");
            figure.querySelector("figcaption").prepend(`${figure.dataset.question} `);
            figure.querySelector(".picture").replaceWith(panel);
        }
    },

    // An SVG element with attributes and children.
    svg(tag, attributes = {}, ...children) {
        const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        element.append(...children);
        return element;
    },

    // A place for a picture. On a phone the picture scrolls by itself.
    screen(picture) {
        const place = document.createElement("div");
        place.className = "screen";
        place.append(picture);
        return place;
    },

    // A slider with its label and its value. Returns the input.
    slider(panel, { label, min, max, step = 1, value }, changed) {
        const input = document.createElement("input");
        Object.assign(input, { type: "range", min, max, step, value });
        const shown = document.createElement("output");
        const line = document.createElement("label");
        const name = document.createElement("span");
        name.textContent = label;
        line.append(name, input, shown);
        panel.append(line);
        input.show = () => { shown.textContent = input.value; };
        input.addEventListener("input", () => { input.show(); changed(); });
        input.show();
        return input;
    },

    // A list to choose from, with its label. Returns the element.
    choice(panel, { label, options }, changed) {
        const list = document.createElement("select");
        for (const option of options) list.append(new Option(option, option));
        const line = document.createElement("label");
        const name = document.createElement("span");
        name.textContent = label;
        line.append(name, list);
        panel.append(line);
        list.addEventListener("change", changed);
        return list;
    },

    // A line of text that is read out when it changes.
    says(panel) {
        const line = document.createElement("p");
        line.setAttribute("aria-live", "polite");
        panel.append(line);
        return line;
    },

    // A number with a minus that is as wide as a plus.
    signed(value, digits) {
        return value.toFixed(digits).replace("-", "−");
    },

    // A path through points.
    path(points) {
        return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    },
};
