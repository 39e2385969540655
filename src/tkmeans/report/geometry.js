"use strict";
// What the picture needs and what knows nothing of it: numbers, their text, and shapes.
const geometry = (() => {
  const bytes = (text) => {
    const raw = atob(text), found = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
    return found.buffer;
  };

  const cell = (centers, k, win, slopes) => { // the part of a window that is nearest to centre k, by clipping
    let polygon = [[win.x0, win.y0], [win.x1, win.y0], [win.x1, win.y1], [win.x0, win.y1]];
    for (let j = 0; j < centers.length && polygon.length; j++) {
      if (j === k) continue;
      const a = (centers[j][0] - centers[k][0]) * slopes[0] ** 2, b = (centers[j][1] - centers[k][1]) * slopes[1] ** 2;
      if (!a && !b) continue;
      const mx = (centers[j][0] + centers[k][0]) / 2, my = (centers[j][1] + centers[k][1]) / 2;
      const side = polygon.map(([x, y]) => (x - mx) * a + (y - my) * b), kept = [];
      polygon.forEach((p, i) => {
        const q = polygon[(i + 1) % polygon.length], s = side[i], t = side[(i + 1) % polygon.length];
        if (s <= 0) kept.push(p);
        if (s * t < 0) kept.push([p[0] + (q[0] - p[0]) * s / (s - t), p[1] + (q[1] - p[1]) * s / (s - t)]);
      });
      polygon = kept;
    }
    return polygon;
  };

  const ticks = (low, high, about) => {
    const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * ([1, 2, 5, 10].find((s) => s * power >= raw) || 10), first = Math.ceil(low / step) * step;
    const found = Array.from({ length: about + 1 }, (_, i) => first + i * step).filter((v) => v <= high);
    return { found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  };
  const tickText = (v, digits) => {
    const powers = Math.abs(v) >= 1e6 || (digits > 6 && Math.abs(v) < 1e-3);
    return (powers ? v.toExponential(2) : v.toFixed(Math.min(digits, 12))).replace("-", "−");
  };
  const fitted = (ctx, text, width) => { // as much of a text as there is room for
    let n = text.length;
    if (ctx.measureText(text).width <= width) return text;
    while (n > 1 && ctx.measureText(text.slice(0, n) + "…").width > width) n--;
    return text.slice(0, n) + "…";
  };
  const valueText = (c, v) => v !== v ? "no value" : (c.decimals === null ? v.toPrecision(4) : v.toFixed(c.decimals)).replace("-", "−");

  const arrow = (ctx, x, y, angle, size) => {
    ctx.save(); ctx.translate(x, y); ctx.rotate(angle); ctx.beginPath();
    ctx.moveTo(size / 2, 0); ctx.lineTo(-size / 2, size / 2); ctx.lineTo(-size / 2, -size / 2); ctx.closePath();
    ctx.fill(); ctx.stroke(); ctx.restore();
  };

  return { bytes, cell, ticks, tickText, fitted, valueText, arrow };
})();
