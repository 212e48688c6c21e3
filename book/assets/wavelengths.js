// How many positions each plane needs for one turn, and how kappa changes it: NTK beside linear
// interpolation.
"use strict";

widget.mount("wavelengths", (panel, data) => {
    const { svg, screen, slider, says, blue, orange, green } = widget;
    const d = 128, base = 10000, trained = 4096, planes = d / 2;
    const plain = i => 2 * Math.PI * base ** (2 * i / d);
    // base' = base k^(d/(d-2)): plane 0 keeps its wavelength, the last one is multiplied by k.
    const ntk = (i, k) => 2 * Math.PI * (base * k ** (d / (d - 2))) ** (2 * i / d);
    const interpolated = (i, k) => k * plain(i);

    const x = i => 96 + i / (planes - 1) * 594;
    const y = positions => 330 - Math.log10(positions) / 6.4 * 296;
    const text = (tx, ty, words, anchor = "middle") =>
        svg("text", { x: tx, y: ty, fill: "currentColor", "text-anchor": anchor }, words);
    const legend = (tx, color, words) => {
        const label = text(tx, 374, words);
        label.firstChild.replaceWith(svg("tspan", { fill: color }, words.slice(0, 1)), words.slice(1));
        return label;
    };
    const picture = svg("svg", { viewBox: "0 0 720 380", role: "img" });
    picture.setAttribute("aria-label", "Wavelengths of 64 planes: without change, with NTK, with linear interpolation");
    for (let power = 0; power <= 6; power += 2) {
        picture.append(
            svg("line", { x1: 96, x2: 690, y1: y(10 ** power), y2: y(10 ** power), stroke: "currentColor", "stroke-opacity": 0.2 }),
            text(88, y(10 ** power) + 5, (10 ** power).toLocaleString("en"), "end"),
        );
    }
    picture.append(
        svg("line", { x1: 96, x2: 690, y1: y(trained), y2: y(trained), stroke: "currentColor", "stroke-dasharray": "2 5" }),
        text(100, y(trained) - 7, "training length 4,096", "start"),
        text(8, 22, "positions for one turn (log scale)", "start"),
        text(96, 352, "plane 0", "start"), text(690, 352, "plane 63", "end"),
        legend(200, blue, "● no change"), legend(330, orange, "▲ NTK"), legend(500, green, "■ linear interpolation"),
    );
    const marks = [];
    for (let i = 0; i < planes; i += 3) {
        const triangle = svg("path", { d: "M0 -7L6 5L-6 5Z", fill: orange });
        const square = svg("rect", { x: -4, y: -4, width: 8, height: 8, fill: green });
        picture.append(square, triangle, svg("circle", { r: 3.5, fill: blue, cx: x(i), cy: y(plain(i)) }));
        marks.push({ i, triangle, square });
    }
    panel.append(screen(picture));

    const draw = () => {
        const k = Number(kappa.value);
        for (const { i, triangle, square } of marks) {
            triangle.setAttribute("transform", `translate(${x(i)} ${y(ntk(i, k))})`);
            square.setAttribute("transform", `translate(${x(i)} ${y(interpolated(i, k))})`);
        }
        const [first, last] = [ntk(0, k), ntk(planes - 1, k)];
        const show = positions => positions.toLocaleString("en", { maximumFractionDigits: 2 });
        line.textContent = `With NTK plane 0 needs ${show(first)} positions for a turn, and plane 63 `
            + `needs ${show(Math.round(last))}: ${k} times what it was. Interpolation makes plane 0 need ${show(interpolated(0, k))}.`;
        Object.assign(data, { kappa: k, first, last });
    };
    const kappa = slider(panel, { label: "ratio k", min: 1, max: 32, value: 4 }, () => draw());
    const line = says(panel);
    draw();
});
