// What each encoding makes of a distance: the angles of four planes, and the score of one query and one key.
//
// Trained up to 128 positions. An angle that no distance below 128 has is an angle that training has not seen.
"use strict";

widget.mount("distances", (panel, data) => {
    const { svg, screen, slider, choice, says, signed, path, blue, orange, green } = widget;
    // head_dim 8: plane i is the pair (x[i], x[i + 4]).
    const q = [1.0, 0.9, -0.5, 0.8, 0.3, -0.6, 0.9, 0.4];
    const k = [0.8, -0.4, 0.7, 0.9, -0.6, 0.9, 0.5, -0.2];
    const d = 8, planes = 4, base = 10000, trained = 128, factor = 8, last = 1024;
    const theta = (i, from = base) => from ** (-2 * i / d);
    const all = of => [...Array(planes).keys()].map(of);
    const plain = all(i => theta(i));

    // Frequencies, a factor of each plane by distance, a scale of queries and keys, and what is added.
    const turned = (frequencies, more = {}) => ({ frequencies, fades: () => 1, scale: 1, bias: () => 0, ...more });
    const still = bias => turned(all(() => 0), { bias });
    const yarn = () => {
        const plane = turns => d * Math.log(trained / (turns * 2 * Math.PI)) / (2 * Math.log(base));
        const [first, end] = [Math.max(Math.floor(plane(32)), 0), Math.min(Math.ceil(plane(1)), d - 1)];
        const slowed = i => {
            const share = 1 - Math.min(Math.max((i - first) / (end - first), 0), 1);
            return theta(i) / factor + (theta(i) - theta(i) / factor) * share;
        };
        return turned(all(slowed), { scale: 0.1 * Math.log(factor) + 1 });
    };
    // ALiBi's slope of the last head, and KERPLE's with r1 = 1 and r2 = 0.5.
    const alibi = j => -j / 256;
    const encodings = {
        "RoPE": turned(plain),
        "interpolation": turned(plain.map(x => x / factor)),
        "NTK": turned(all(i => theta(i, base * factor ** (d / (d - 2))))),
        "YaRN": yarn(),
        "partial RoPE": turned([1, base ** (-1 / 2), 0, 0]),
        "xPos": turned(plain, { fades: (i, j) => ((2 * i / d + 0.4) / 1.4) ** (j / 512) }),
        "ALiBi": still(alibi),
        "KERPLE, logarithm": still(j => -Math.log(1 + 0.5 * j)),
        "KERPLE, power": still(j => -Math.sqrt(j)),
        "RoPE and ALiBi": turned(plain, { bias: alibi }),
        "none": still(() => 0),
    };
    // Half of the planes of partial RoPE are not turned: its pairs are (x[0], x[2]) and (x[1], x[3]).
    const pair = (name, x, i) => {
        if (name !== "partial RoPE") return [x[i], x[i + planes]];
        return i < 2 ? [x[i], x[i + 2]] : [x[2 * i], x[2 * i + 1]];
    };
    const score = (name, j) => {
        const { frequencies, fades, scale, bias } = encodings[name];
        const sum = all(i => {
            const [[a, b], [c, e]] = [pair(name, q, i), pair(name, k, i)];
            const angle = j * frequencies[i];
            return fades(i, j) * ((a * c + b * e) * Math.cos(angle) + (a * e - b * c) * Math.sin(angle));
        }).reduce((x, y) => x + y);
        return scale * scale * sum / Math.sqrt(d) + bias(j);
    };
    // The angle within a turn, and whether a distance of training had it. What was trained are plain frequencies,
    // whatever was made of them later.
    const angle = (name, i, j) => (j * encodings[name].frequencies[i]) % (2 * Math.PI);
    const seen = (name, i, j) => {
        const at = name === "partial RoPE" ? encodings[name].frequencies[i] : plain[i];
        return angle(name, i, j) <= (trained - 1) * at + 1e-9;
    };

    const text = (x, y, words, more = {}) =>
        svg("text", { x, y, fill: "currentColor", "text-anchor": "middle", ...more }, words);
    const picture = svg("svg", { viewBox: "0 0 720 430", role: "img" });
    picture.setAttribute("aria-label", "Four clocks with the angles of four planes, and the score by distance below");
    const clocks = all(i => {
        const x = 90 + 180 * i;
        const wedge = svg("path", { fill: blue, "fill-opacity": 0.25 });
        const hand = svg("line", { x1: x, y1: 84, "stroke-width": 4, "stroke-linecap": "round" });
        const name = text(x, 178, "");
        picture.append(svg("circle", { cx: x, cy: 84, r: 70, fill: "none", stroke: "currentColor", "stroke-opacity": 0.4 }), wedge, hand, name);
        return { x, wedge, hand, name };
    });
    const at = j => 60 + j / last * 630;
    const up = value => 300 - Math.min(Math.max(value, -6), 4) * 14;
    const curve = svg("path", { fill: "none", stroke: green, "stroke-width": 1.5 });
    const dot = svg("circle", { r: 7, fill: green });
    for (const value of [-6, -4, -2, 0, 2, 4]) {
        picture.append(
            svg("line", { x1: 60, x2: 690, y1: up(value), y2: up(value), stroke: "currentColor", "stroke-opacity": value ? 0.15 : 0.4 }),
            text(52, up(value) + 5, signed(value, 0), { "text-anchor": "end" }),
        );
    }
    picture.append(
        svg("line", { x1: at(trained), x2: at(trained), y1: up(4), y2: up(-6), stroke: "currentColor", "stroke-dasharray": "2 5" }),
        text(at(trained) + 6, 240, "trained up to here", { "text-anchor": "start" }),
        curve, dot,
        text(60, 408, "distance 0", { "text-anchor": "start" }), text(690, 408, "1,024", { "text-anchor": "end" }),
        text(375, 408, "the score of this query and this key"),
    );
    panel.append(screen(picture));

    const draw = () => {
        const [name, j] = [encoding.value, Number(distance.value)];
        const { frequencies } = encodings[name];
        let unseen = 0;
        clocks.forEach(({ x, wedge, hand, name: label }, i) => {
            const turns = frequencies[i] > 0;
            const known = turns && seen(name, i, j);
            if (turns && !known) unseen += 1;
            const range = Math.min((trained - 1) * (name === "partial RoPE" ? frequencies[i] : plain[i]), 2 * Math.PI - 1e-3);
            const point = (a, r) => `${x + r * Math.cos(a)} ${84 - r * Math.sin(a)}`;
            wedge.setAttribute("d", turns ? `M${x} 84L${point(0, 70)}A70 70 0 ${range > Math.PI ? 1 : 0} 0 ${point(range, 70)}Z` : "");
            const a = angle(name, i, j);
            hand.setAttribute("x2", x + 60 * Math.cos(a));
            hand.setAttribute("y2", 84 - 60 * Math.sin(a));
            hand.setAttribute("stroke", !turns ? "none" : known ? blue : orange);
            label.textContent = !turns ? "not turned" : known ? "seen" : "not seen";
        });
        const points = [];
        for (let at_distance = 0; at_distance <= last; at_distance++) points.push([at(at_distance), up(score(name, at_distance))]);
        curve.setAttribute("d", path(points));
        const value = score(name, j);
        dot.setAttribute("cx", at(j));
        dot.setAttribute("cy", up(value));
        const turning = frequencies.filter(x => x > 0).length;
        const words = turning ? `${unseen} of ${turning} planes stand at an angle that training has not seen` : "no plane is turned";
        line.textContent = `${name}, distance ${j}: the score is ${signed(value, 3)}, and ${words}.`;
        Object.assign(data, { q: q.join(), k: k.join(), encoding: name, distance: j, score: value, unseen });
    };
    const encoding = choice(panel, { label: "encoding", options: Object.keys(encodings) }, () => draw());
    const distance = slider(panel, { label: "distance of query and key", min: 0, max: last, value: 300 }, () => draw());
    const line = says(panel);
    draw();
});
