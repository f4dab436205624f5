// Sorts the register by a column, and filters its rows.

const table = document.querySelector("#register"), body = table.tBodies[0], form = document.querySelector(".filters");
const rows = [...body.rows], filters = [...form.querySelectorAll("select")], said = form.querySelector("[role=status]");

for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => sort(head, column));
}
for (const one of filters) one.addEventListener("change", filter);
form.hidden = false;
filter();

function sort(head, column) {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const one of head.parentNode.cells) one.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const text = row => row.cells[column].textContent.trim();
  rows.sort((one, other) => text(one).localeCompare(text(other), "en", {numeric: true}) * (down ? -1 : 1));
  body.append(...rows);
}

function filter() {
  for (const row of rows) row.hidden = filters.some(one => one.value && row.dataset[one.dataset.column] !== one.value);
  said.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} shown`;
}
