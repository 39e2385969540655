// The picture: rows on a canvas, to point at, zoom and move. It exports `picture.show(row)`.
const picture = (() => {
  const { bytes, cell, ticks, tickText, fitted, valueText, arrow } = geometry;
  const data = JSON.parse(document.getElementById("data").textContent);
  const canvas = document.getElementById("canvas"), tip = document.getElementById("tip");
  const MARGIN = { left: 58, right: 14, top: 12, bottom: 42 }, NEAR = 16, TRUTHFUL = 0.95, SLIVER = 2.2;
  const labels = new Uint16Array(bytes(data.labels)), outlier = new Uint8Array(bytes(data.outliers));
  const certainty = data.certainty && new Uint16Array(bytes(data.certainty));
  const numbers = new Uint32Array(bytes(data.numbers));
  const columns = data.columns.map((c) => ({ ...c, values: new Float32Array(bytes(c.values)) }));
  const shapes = data.shapes.map((d) => new Path2D(d));
  const n = labels.length, K = columns[0].centers.length, hidden = new Set();
  const at = new Float32Array(2 * n); // where each row was drawn; NaN if nowhere
  let [X, Y] = data.view.map((i) => columns[i]);
  let frame, win, truthful, theme, printing = false, marked = -1, asked = false;

  // ---- where things are ------------------------------------------------------------

  const reach = (c) => { // the rows that are no outliers, and a margin
    let low = Infinity, high = -Infinity;
    for (let pass = 0; pass < 2 && low > high; pass++) {
      for (let i = 0; i < n; i++) {
        const v = c.values[i];
        if ((pass || !outlier[i]) && v === v) { low = Math.min(low, v); high = Math.max(high, v); }
      }
    }
    if (low > high) [low, high] = [0, 1];
    const pad = high > low ? 0.06 * (high - low) : 0.5;
    return [low - pad, high + pad];
  };
  const room = () => ({ w: canvas.clientWidth - MARGIN.left - MARGIN.right, h: canvas.clientHeight - MARGIN.top - MARGIN.bottom });
  const fit = () => { // the whole picture; to scale where distances are what they seem
    const [x0, x1] = reach(X), [y0, y1] = reach(Y), { w, h } = room();
    frame = { x0, x1, y0, y1 };
    if (X.slope && Y.slope) {
      const across = (x1 - x0) * Math.abs(X.slope) / w, up = (y1 - y0) * Math.abs(Y.slope) / h;
      if (across < SLIVER * up && up < SLIVER * across) {
        const more = across < up ? "x" : "y", factor = (across < up ? up / across : across / up) - 1;
        const extra = (frame[more + 1] - frame[more + 0]) * factor / 2;
        frame[more + 0] -= extra; frame[more + 1] += extra;
      }
    }
    win = { ...frame };
  };
  const toX = (v) => MARGIN.left + (v - win.x0) / (win.x1 - win.x0) * room().w;
  const toY = (v) => MARGIN.top + (win.y1 - v) / (win.y1 - win.y0) * room().h;
  const places = () => columns[0].centers.map((_, k) => [X.centers[k] - X.middle, Y.centers[k] - Y.middle]);

  const nearestIsRight = () => { // whether borders between nearest centres tell the truth in this view
    if (!X.slope || !Y.slope || K < 2) return false;
    const centers = places();
    let right = 0, all = 0;
    for (let i = 0; i < n; i++) {
      if (outlier[i] || X.values[i] !== X.values[i] || Y.values[i] !== Y.values[i]) continue;
      let best = -1, least = Infinity;
      for (let k = 0; k < K; k++) {
        const dx = (X.values[i] - centers[k][0]) * X.slope, dy = (Y.values[i] - centers[k][1]) * Y.slope;
        if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = k; }
      }
      all++; right += best === labels[i];
    }
    return right >= TRUTHFUL * all;
  };

  // ---- drawing ---------------------------------------------------------------------

  const colors = () => {
    const css = getComputedStyle(document.documentElement), read = (name) => css.getPropertyValue(name).trim();
    if (printing) return { ink: "#000", soft: "#444", line: "#bbb", card: "#fff", clusters: data.colors };
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const lit = (color) => "rgb(" + [1, 3, 5].map((i) => Math.round(0.7 * parseInt(color.slice(i, i + 2), 16) + 76.5)) + ")";
    return { ink: read("--ink"), soft: read("--soft"), line: read("--line"), card: read("--card"),
      clusters: dark ? data.colors.map(lit) : data.colors };
  };
  const drawAxes = (ctx) => {
    const { w, h } = room();
    ctx.fillStyle = theme.soft; ctx.strokeStyle = theme.line; ctx.lineWidth = 1; ctx.font = "12px system-ui, sans-serif";
    ctx.textAlign = "center"; ctx.textBaseline = "top";
    const across = ticks(win.x0 + X.middle, win.x1 + X.middle, Math.max(3, w / 90));
    for (const v of across.found) ctx.fillText(tickText(v, across.digits), toX(v - X.middle), MARGIN.top + h + 6);
    ctx.textAlign = "right"; ctx.textBaseline = "middle";
    if (Y.kind !== "height") {
      const up = ticks(win.y0 + Y.middle, win.y1 + Y.middle, Math.max(3, h / 60));
      for (const v of up.found) ctx.fillText(tickText(v, up.digits), MARGIN.left - 6, toY(v - Y.middle));
    }
    ctx.fillStyle = theme.ink; ctx.textAlign = "center"; ctx.textBaseline = "alphabetic"; ctx.font = "13px system-ui, sans-serif";
    ctx.fillText(fitted(ctx, X.name, w), MARGIN.left + w / 2, MARGIN.top + h + 36);
    ctx.save(); ctx.translate(13, MARGIN.top + h / 2); ctx.rotate(-Math.PI / 2); ctx.fillText(fitted(ctx, Y.name, h), 0, 0); ctx.restore();
    ctx.strokeRect(MARGIN.left, MARGIN.top, w, h);
  };
  const toEdge = (x, y) => { // where the way to a place beyond the edge leaves the frame
    const { w, h } = room(), mx = MARGIN.left + w / 2, my = MARGIN.top + h / 2;
    const far = Math.max(Math.abs(x - mx) / (w / 2), Math.abs(y - my) / (h / 2));
    return far > 1 ? [mx + (x - mx) / far, my + (y - my) / far, Math.atan2(y - my, x - mx)] : [x, y, null];
  };
  const stamp = (k, scale) => { // the marker of a cluster: drawn once, and then put down for every row
    const sheet = document.createElement("canvas");
    sheet.width = sheet.height = Math.ceil(12 * scale);
    const ctx = sheet.getContext("2d");
    ctx.setTransform(sheet.width / 12, 0, 0, sheet.width / 12, sheet.width / 2, sheet.width / 2);
    ctx.fillStyle = theme.clusters[k % theme.clusters.length];
    ctx.fill(shapes[k % shapes.length]);
    return sheet;
  };
  const drawRows = (ctx) => {
    const zoom = (frame.x1 - frame.x0) / (win.x1 - win.x0);
    const size = Math.min(1.3, Math.max(0.42, 22 / Math.sqrt(n + 1)) * Math.min(2.2, Math.sqrt(zoom) ** 0.8));
    const { w, h } = room(), px = devicePixelRatio * (printing ? 2 : 1);
    const stamps = places().map((_, k) => stamp(k, size * px));
    const perX = w / (win.x1 - win.x0), perY = h / (win.y1 - win.y0);
    at.fill(NaN);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.globalAlpha = 0.78;
    for (let i = 0; i < n; i++) {
      if (outlier[i] || hidden.has(labels[i])) continue;
      const x = MARGIN.left + (X.values[i] - win.x0) * perX, y = MARGIN.top + (win.y1 - Y.values[i]) * perY;
      if (!(x >= MARGIN.left && x <= MARGIN.left + w && y >= MARGIN.top && y <= MARGIN.top + h)) continue;
      at[2 * i] = x; at[2 * i + 1] = y;
      const sheet = stamps[labels[i]], half = sheet.width / 2;
      ctx.drawImage(sheet, Math.round(x * px - half), Math.round(y * px - half)); // pixel on pixel: many times quicker
    }
    ctx.setTransform(px, 0, 0, px, 0, 0);
    ctx.globalAlpha = 1;
  };
  const drawOutliers = (ctx) => {
    ctx.lineWidth = 1.4; ctx.strokeStyle = theme.ink; ctx.fillStyle = theme.card;
    for (let i = 0; i < n; i++) {
      if (!outlier[i] || hidden.has(labels[i]) || X.values[i] !== X.values[i] || Y.values[i] !== Y.values[i]) continue;
      const [x, y, angle] = toEdge(toX(X.values[i]), toY(Y.values[i]));
      at[2 * i] = x; at[2 * i + 1] = y;
      if (angle !== null) { ctx.lineWidth = 1; arrow(ctx, x, y, angle, 7); ctx.lineWidth = 1.4; continue; }
      ctx.beginPath(); ctx.moveTo(x - 3.5, y - 3.5); ctx.lineTo(x + 3.5, y + 3.5);
      ctx.moveTo(x - 3.5, y + 3.5); ctx.lineTo(x + 3.5, y - 3.5); ctx.stroke();
    }
  };
  const drawCenters = (ctx) => {
    ctx.textAlign = "center"; ctx.textBaseline = "middle"; ctx.lineWidth = 1.5;
    const small = Math.min(1, Math.max(0.6, Math.sqrt((frame.x1 - frame.x0) / (win.x1 - win.x0)))); // not to hide all rows
    ctx.font = `bold ${11 * small}px system-ui, sans-serif`;
    places().forEach(([a, b], k) => {
      if (hidden.has(k)) return;
      const [x, y, angle] = toEdge(toX(a), toY(b));
      ctx.fillStyle = theme.ink; ctx.strokeStyle = theme.card;
      if (angle !== null) { arrow(ctx, x, y, angle, 15); return; }
      ctx.beginPath(); ctx.arc(x, y, (k > 99 ? 12 : 10) * small, 0, 2 * Math.PI); ctx.fill(); ctx.stroke();
      ctx.fillStyle = theme.card; ctx.fillText(k, x, y + 0.5);
    });
  };
  const drawBorders = (ctx) => {
    ctx.strokeStyle = theme.soft; ctx.lineWidth = 0.8; ctx.globalAlpha = 0.6;
    const centers = places();
    for (let k = 0; k < K; k++) {
      ctx.beginPath();
      cell(centers, k, win, [X.slope, Y.slope]).forEach(([x, y], i) => i ? ctx.lineTo(toX(x), toY(y)) : ctx.moveTo(toX(x), toY(y)));
      ctx.closePath(); ctx.stroke();
    }
    ctx.globalAlpha = 1;
  };
  const draw = () => {
    asked = false;
    const px = devicePixelRatio * (printing ? 2 : 1), ctx = canvas.getContext("2d"), { w, h } = room();
    if (w <= 0 || h <= 0) return;
    canvas.width = Math.round(canvas.clientWidth * px); canvas.height = Math.round(canvas.clientHeight * px);
    theme = colors();
    ctx.setTransform(px, 0, 0, px, 0, 0);
    drawAxes(ctx);
    ctx.save(); ctx.beginPath(); ctx.rect(MARGIN.left, MARGIN.top, w, h); ctx.clip();
    if (truthful) drawBorders(ctx);
    drawRows(ctx);
    ctx.restore();
    drawOutliers(ctx); drawCenters(ctx);
    if (marked >= 0 && at[2 * marked] === at[2 * marked]) {
      ctx.strokeStyle = theme.ink; ctx.lineWidth = 2.5; ctx.beginPath();
      ctx.arc(at[2 * marked], at[2 * marked + 1], 9, 0, 2 * Math.PI); ctx.stroke();
    }
    canvas.dataset.area = [MARGIN.left, MARGIN.top, w, h].join(" "); // for whoever wants to point at a place
    canvas.dataset.zoom = ((frame.x1 - frame.x0) / (win.x1 - win.x0)).toFixed(3);
    canvas.dataset.window = [win.x0 + X.middle, win.x1 + X.middle, win.y0 + Y.middle, win.y1 + Y.middle].join(" ");
    canvas.style.touchAction = canvas.dataset.zoom > 1.01 ? "none" : "pan-y";
    performance.mark("drawn");
  };
  const redraw = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };

  // ---- pointing --------------------------------------------------------------------

  const line = (name, value) => {
    const row = document.createElement("div");
    for (const words of [name, value]) row.appendChild(document.createElement("span")).textContent = words;
    return row;
  };
  const describe = (i) => {
    const name = document.createElement("b"), state = document.createElement("div");
    name.textContent = data.rows ? data.rows[i] : `row ${numbers[i]}`;
    const sure = certainty && K > 1 ? `, ${(certainty[i] / 10).toFixed(certainty[i] < 990 ? 0 : 1)} % probable` : "";
    state.textContent = outlier[i] ? `outlier; nearest to cluster ${labels[i]}` : `cluster ${labels[i]}${sure}`;
    const own = columns.filter((c) => c.kind === "column").slice(0, 6);
    tip.replaceChildren(name, state, ...own.map((c) => line(c.name, valueText(c, c.values[i] + c.middle))));
  };
  const mark = (i) => {
    marked = i;
    tip.hidden = i < 0 || !(at[2 * i] === at[2 * i]);
    if (!tip.hidden) {
      describe(i);
      const x = at[2 * i], y = at[2 * i + 1];
      const left = x + 16 + tip.offsetWidth > canvas.clientWidth ? Math.max(4, x - 16 - tip.offsetWidth) : x + 16;
      const top = Math.min(Math.max(4, y - tip.offsetHeight / 2), canvas.clientHeight - tip.offsetHeight - 4);
      tip.style.transform = `translate(${left}px, ${top}px)`;
    }
    redraw();
  };
  const nearest = (x, y) => {
    let best = -1, least = NEAR * NEAR;
    for (let i = 0; i < n; i++) {
      const d = (at[2 * i] - x) ** 2 + (at[2 * i + 1] - y) ** 2;
      if (d < least) { least = d; best = i; }
    }
    return best;
  };

  // ---- zooming and moving ----------------------------------------------------------

  const zoomAt = (factor, x, y) => {
    const { w, h } = room(), zoom = (frame.x1 - frame.x0) / (win.x1 - win.x0);
    factor = Math.min(Math.max(zoom * factor, 0.02), 1e4) / zoom;
    const a = win.x0 + (x - MARGIN.left) / w * (win.x1 - win.x0), b = win.y1 - (y - MARGIN.top) / h * (win.y1 - win.y0);
    win = { x0: a - (a - win.x0) / factor, x1: a + (win.x1 - a) / factor, y0: b - (b - win.y0) / factor, y1: b + (win.y1 - b) / factor };
    mark(-1);
  };
  const middle = () => [MARGIN.left + room().w / 2, MARGIN.top + room().h / 2];
  const move = (dx, dy) => {
    const a = dx / room().w * (win.x1 - win.x0), b = dy / room().h * (win.y1 - win.y0);
    win = { x0: win.x0 - a, x1: win.x1 - a, y0: win.y0 + b, y1: win.y1 + b };
    mark(-1);
  };
  const whole = () => { win = { ...frame }; mark(-1); };
  const show = (number) => { // a row of the data, if it was drawn: in the middle, and marked
    const i = numbers.indexOf(number);
    if (i < 0 || !(X.values[i] === X.values[i]) || !(Y.values[i] === Y.values[i])) return false;
    hidden.delete(labels[i]); pressLegend();
    whole();
    if (outlier[i]) { // as far out as it takes
      const inside = (v, low, high) => v >= low && v <= high;
      if (!inside(X.values[i], win.x0, win.x1) || !inside(Y.values[i], win.y0, win.y1)) {
        const [cx, cy] = [(frame.x0 + frame.x1) / 2, (frame.y0 + frame.y1) / 2];
        const far = 1.15 * Math.max(Math.abs(X.values[i] - cx) / (frame.x1 - cx), Math.abs(Y.values[i] - cy) / (frame.y1 - cy));
        zoomAt(1 / far, ...middle());
      }
    }
    draw(); mark(i);
    canvas.scrollIntoView({ block: "center" });
    return true;
  };

  const fingers = new Map();
  const spot = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, spot(event));
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = spot(event), before = fingers.get(event.pointerId);
    if (!before) { mark(nearest(...now)); return; }
    if (fingers.size === 2) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const gap = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      if (gap(before) > 0) zoomAt(gap(now) / gap(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else if (now[0] !== before[0] || now[1] !== before[1]) {
      canvas.classList.add("moving");
      move(now[0] - before[0], now[1] - before[1]);
    }
    fingers.set(event.pointerId, now);
  });
  const lift = (event) => {
    const moved = canvas.classList.contains("moving");
    if (fingers.delete(event.pointerId) && !fingers.size) canvas.classList.remove("moving");
    if (event.type === "pointerup" && !moved) mark(nearest(...spot(event)));
  };
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, lift);
  canvas.addEventListener("pointerleave", () => { if (!fingers.size) mark(-1); });
  canvas.addEventListener("wheel", (event) => { // a page that scrolls past must not be held up
    if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomAt(Math.exp(-Math.sign(event.deltaY) * 0.22), ...spot(event));
  }, { passive: false });
  canvas.addEventListener("dblclick", whole);
  const keys = {
    "+": () => zoomAt(1.4, ...middle()), "=": () => zoomAt(1.4, ...middle()), "-": () => zoomAt(1 / 1.4, ...middle()),
    ArrowLeft: () => move(60, 0), ArrowRight: () => move(-60, 0), ArrowUp: () => move(0, 60), ArrowDown: () => move(0, -60),
    0: whole, Home: whole, Escape: () => mark(-1),
  };
  canvas.addEventListener("keydown", (event) => {
    if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); keys[event.key](); }
  });
  document.getElementById("closer").addEventListener("click", () => zoomAt(1.5, ...middle()));
  document.getElementById("farther").addEventListener("click", () => zoomAt(1 / 1.5, ...middle()));
  document.getElementById("whole").addEventListener("click", whole);

  // ---- choosing --------------------------------------------------------------------

  const legend = document.getElementById("legend");
  const pressLegend = () => {
    for (const button of legend.children) button.setAttribute("aria-pressed", !hidden.has(Number(button.dataset.cluster)));
  };
  legend.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const k = Number(button.dataset.cluster);
    if (!hidden.delete(k)) hidden.add(k);
    pressLegend(); mark(-1);
  });
  const turn = () => { // another pair of columns
    fit();
    truthful = nearestIsRight();
    document.getElementById("hints").textContent = truthful
      ? "Lines are halfway between centres; nearly all rows are on the side of their cluster."
      : K > 1 ? "No borders are drawn, because clusters overlap in this view." : "";
    if (outlier.some(Boolean)) {
      document.getElementById("hints").textContent += " A cross is an outlier; an arrow at the edge points to an outlier beyond it."
        + (columns.length > 2 ? " An outlier that seems to lie in a cluster is far away in other columns." : "");
    }
    mark(-1);
  };
  if (columns.length > 2) { // otherwise there is nothing to choose
    document.getElementById("axes").hidden = false;
    for (const [id, own] of [["across", 0], ["up", 1]]) {
      const select = document.getElementById(id);
      columns.forEach((c, i) => select.add(new Option(c.name, i, false, i === data.view[own])));
      select.addEventListener("change", () => {
        if (own) Y = columns[select.value]; else X = columns[select.value];
        turn();
      });
    }
  }
  new ResizeObserver(() => {
    const same = canvas.width === Math.round(canvas.clientWidth * devicePixelRatio);
    if (printing || (same && canvas.height === Math.round(canvas.clientHeight * devicePixelRatio))) return;
    if (Math.abs((canvas.dataset.zoom ?? 1) - 1) < 1e-3) fit(); // who has zoomed in stays there
    redraw();
  }).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => { printing = true; draw(); });
  addEventListener("afterprint", () => { printing = false; draw(); });
  turn();
  return { show };
})();
