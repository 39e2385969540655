// Line charts, tables that sort, rows that can be shown, and a page that prints unfolded.
for (const svg of document.querySelectorAll("svg.chart")) {
  const { points, marks, names } = JSON.parse(svg.dataset.chart);
  const WIDTH = Math.max(300, Math.min(640, svg.clientWidth || 640)); // a pixel is a pixel, so that a phone can show the text
  const HEIGHT = 260, RIGHT = 16, TOP = 14, BOTTOM = 46;
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  const add = (kind, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    svg.append(element);
  };
  const reach = (values) => [Math.min(...values), Math.max(...values)];
  const [left, right] = reach(points.map((p) => p[0])), [low, high] = reach(points.map((p) => p[1]));
  const up = high > low ? geometry.ticks(low, high, 5) : { found: [low], digits: 3 };
  const upward = up.found.map((tick) => geometry.tickText(tick, up.digits));
  const LEFT = Math.max(78, 34 + 7 * Math.max(...upward.map((words) => words.length)));
  const x = (a) => LEFT + (right > left ? (a - left) / (right - left) : 0.5) * (WIDTH - LEFT - RIGHT);
  const y = (b) => HEIGHT - BOTTOM - (high > low ? (b - low) / (high - low) : 0.5) * (HEIGHT - TOP - BOTTOM);
  up.found.forEach((tick, i) => {
    add("path", { class: "grid", d: `M${LEFT} ${y(tick)}H${WIDTH - RIGHT}` });
    add("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, upward[i]);
  });
  const step = Math.max(1, Math.ceil((right - left) / (WIDTH / 64)));
  for (let tick = left; tick <= right; tick += step) {
    add("text", { x: x(tick), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, String(tick));
  }
  add("polyline", { class: "curve", points: points.map(([a, b]) => `${x(a)},${y(b)}`).join(" ") });
  if (points.length <= 60) for (const [a, b] of points) add("circle", { class: "dot", cx: x(a), cy: y(b), r: 3 });
  marks.forEach(([wanted, kind, words], line) => { // on the curve, and beside its meaning
    for (const [a, b] of points) if (a === wanted) add("circle", { class: `mark ${kind}`, cx: x(a), cy: y(b), r: 6 });
    add("circle", { class: `mark ${kind}`, cx: WIDTH - 150, cy: TOP + 8 + 20 * line, r: 6 });
    add("text", { class: "caption", x: WIDTH - 136, y: TOP + 12 + 20 * line }, words);
  });
  add("text", { class: "name", x: (LEFT + WIDTH - RIGHT) / 2, y: 254, "text-anchor": "middle" }, names[0]);
  add("text", { class: "name", transform: "translate(14 114) rotate(-90)", "text-anchor": "middle" }, names[1]);
}

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, index) => {
    heading.querySelector("button").addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[index], value = cell.dataset.v ?? cell.textContent;
        return value === "" || isNaN(value) ? value : Number(value);
      };
      const compare = (a, b) => {
        if (a === "" || b === "") return (a === "") - (b === ""); // what is missing comes last, either way
        const both = typeof a === "number" && typeof b === "number";
        const order = both ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
        return down ? -order : order;
      };
      const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
      table.tBodies[0].append(...rows.sort((a, b) => compare(a[0], b[0])).map(([, row]) => row));
    });
  });
}

for (const button of document.querySelectorAll("button.pointer")) {
  button.addEventListener("click", () => {
    if (!picture.show(Number(button.dataset.row))) button.title = "not in this picture";
  });
}

let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const details of folded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
});
