// Tables of the class "sortable": a click on a column's name sorts by it, a second one the other way round.
"use strict";
(function () {
  function key(cell) {
    const given = cell.dataset.value === undefined ? cell.textContent.trim() : cell.dataset.value;
    const number = Number(given);
    return given === "" ? [2, 0] : Number.isNaN(number) ? [1, given] : [0, number];
  }
  function compare(one, other) {
    if (one[0] !== other[0]) return one[0] - other[0];
    if (one[0] === 1) return one[1].localeCompare(other[1], "en", { numeric: true });
    return one[1] - other[1];
  }
  function sort(table, column, header) {
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [key(row.cells[column]), row]);
    rows.sort((one, other) => {
      const empty = (one[0][0] === 2) - (other[0][0] === 2); // empty cells stay at the end
      return empty || (down ? -1 : 1) * compare(one[0], other[0]);
    });
    body.append(...rows.map((pair) => pair[1]));
  }
  document.addEventListener("DOMContentLoaded", () => {
    for (const table of document.querySelectorAll("table.sortable")) {
      Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...header.childNodes);
        button.addEventListener("click", () => sort(table, column, header));
        header.append(button);
      });
    }
  });
})();
