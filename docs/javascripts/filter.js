// The filter box of pages with long tables: shows the rows that contain all of the words.
(() => {
  const box = document.getElementById("filter");
  if (!box) return;
  const count = document.getElementById("filter-count");
  const sections = [...document.querySelectorAll(".md-content table")].map((table) => {
    const rows = [...table.tBodies[0].rows];
    // The heading goes with its table.
    let heading = table;
    while (heading && heading.tagName !== "H2") {
      heading = heading.previousElementSibling ?? heading.parentElement.closest(".md-typeset > *");
    }
    return { table, heading, rows: rows.map((row) => [row, row.textContent.toLowerCase()]) };
  });
  const total = sections.reduce((sum, section) => sum + section.rows.length, 0);
  const apply = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { table, heading, rows } of sections) {
      let here = 0;
      for (const [row, text] of rows) {
        row.hidden = !words.every((word) => text.includes(word));
        if (!row.hidden) here += 1;
      }
      table.hidden = here === 0;
      if (heading) heading.hidden = here === 0;
      shown += here;
    }
    count.textContent = words.length ? `${shown} of ${total}` : `${total}`;
  };
  // A link can bring what to look for: operators.html?filter=jax.
  box.value = new URLSearchParams(location.search).get("filter") ?? "";
  box.addEventListener("input", apply);
  apply();
})();
