// Tables that sort, rows that can be shown, and a page that prints unfolded.
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
