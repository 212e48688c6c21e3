// RoPE's clocks: each plane of a query and of a key is a hand that turns with its position.
//
// Turn both hands by the same number of positions, and the dot product stays.
"use strict";

widget.mount("clocks", (panel, data) => {
    const { svg, screen, slider, says, signed, path, blue, orange, green } = widget;
    // head_dim 8: plane i is the pair (x[i], x[i + 4]), and it turns by base^(-2i/8) a position.
    const q = [1.0, 0.9, -0.5, 0.8, 0.3, -0.6, 0.9, 0.4];
    const k = [0.8, -0.4, 0.7, 0.9, -0.6, 0.9, 0.5, -0.2];
    const base = 10000, planes = 4, last = 60;
    const theta = i => base ** (-2 * i / (2 * planes));

    // Plane i of x, turned to a position.
    const turned = (x, i, position) => {
        const [c, s] = [Math.cos(position * theta(i)), Math.sin(position * theta(i))];
        const [a, b] = [x[i], x[i + planes]];
        return [a * c - b * s, b * c + a * s];
    };
    const product = (m, n) => {
        let sum = 0;
        for (let i = 0; i < planes; i++) {
            const [[a, b], [c, d]] = [turned(q, i, m), turned(k, i, n)];
            sum += a * c + b * d;
        }
        return sum;
    };

    const text = (x, y, words, more = {}) =>
        svg("text", { x, y, fill: "currentColor", "text-anchor": "middle", ...more }, words);
    const picture = svg("svg", { viewBox: "0 0 720 360", role: "img" });
    picture.setAttribute("aria-label", "Four clocks with the hands of a query and a key, and the dot product below");
    const hands = [];
    for (let i = 0; i < planes; i++) {
        const x = 90 + 180 * i;
        picture.append(
            svg("circle", { cx: x, cy: 84, r: 70, fill: "none", stroke: "currentColor", "stroke-opacity": 0.4 }),
            text(x, 178, `θ = ${theta(i)}`),
        );
        const line = (stroke, more) => svg("line", { x1: x, y1: 84, stroke, "stroke-width": 4, "stroke-linecap": "round", ...more });
        const pair = [line(blue, {}), line(orange, { "stroke-dasharray": "9 7" })];
        picture.append(...pair);
        hands.push(pair);
    }
    // The dot product against m - n: one curve for all positions.
    const at = difference => 360 + difference / last * 330;
    const up = value => 275 - value * 20;
    const curve = [];
    for (let d = -last; d <= last; d += 0.25) curve.push([at(d), up(product(d, 0))]);
    const dot = svg("circle", { r: 7, fill: green });
    picture.append(
        svg("line", { x1: 30, x2: 690, y1: up(0), y2: up(0), stroke: "currentColor", "stroke-opacity": 0.4 }),
        svg("line", { x1: 360, x2: 360, y1: 205, y2: 335, stroke: "currentColor", "stroke-opacity": 0.4 }),
        svg("path", { d: path(curve), fill: "none", stroke: green, "stroke-width": 2 }),
        dot,
        text(360, 354, "the dot product against m − n"),
        text(30, 354, `−${last}`, { "text-anchor": "start" }),
        text(690, 354, `${last}`, { "text-anchor": "end" }),
    );
    panel.append(screen(picture));

    const draw = () => {
        const [m, n] = [Number(queries.value), Number(keys.value)];
        for (let i = 0; i < planes; i++) {
            [[q, m], [k, n]].forEach(([vector, position], which) => {
                const [a, b] = turned(vector, i, position);
                hands[i][which].setAttribute("x2", 90 + 180 * i + 54 * a);
                hands[i][which].setAttribute("y2", 84 - 54 * b);
            });
        }
        const value = product(m, n);
        dot.setAttribute("cx", at(m - n));
        dot.setAttribute("cy", up(value));
        line.textContent = `m − n = ${signed(m - n, 0)}, and the dot product is ${signed(value, 4)}.`;
        Object.assign(data, { q: q.join(), k: k.join(), m, n, product: value });
    };
    const queries = slider(panel, { label: "position m of the query (solid)", min: 0, max: last, value: 7 }, () => draw());
    const keys = slider(panel, { label: "position n of the key (dashed)", min: 0, max: last, value: 3 }, () => draw());
    const both = document.createElement("p");
    for (const [label, step] of [["move both back", -1], ["move both on", 1]]) {
        const button = document.createElement("button");
        Object.assign(button, { type: "button", textContent: label });
        button.addEventListener("click", () => {
            const [m, n] = [Number(queries.value) + step, Number(keys.value) + step];
            if (Math.min(m, n) < 0 || Math.max(m, n) > last) return;
            for (const [input, value] of [[queries, m], [keys, n]]) { input.value = value; input.show(); }
            draw();
        });
        both.append(button, " ");
    }
    panel.append(both);
    const line = says(panel);
    draw();
});
