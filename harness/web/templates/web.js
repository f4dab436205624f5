// Refreshes runs in progress and enables the buttons that fit the selection. Everything else works without it.
"use strict";

const chosen = () => document.querySelectorAll("[data-chosen] input:checked").length;

function count() {
  const many = chosen();
  for (const button of document.querySelectorAll("[data-needs]"))
    button.disabled = button.dataset.needs === "2" ? many !== 2 : many === 0;
  const note = document.querySelector("[data-count]");
  if (note) note.textContent = many ? `${many} selected` : "select two to compare";
}

async function refresh() {
  // Do not replace a list while the user selects from it.
  if (!document.hidden && !chosen()) {
    try {
      const answer = await fetch(location.href);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-refresh]")) {
        const now = page.getElementById(part.id);
        if (!now || chosen() || part.contains(document.activeElement)) continue;
        if (now.innerHTML !== part.innerHTML) part.innerHTML = now.innerHTML;
        if (now.dataset.refresh === undefined) delete part.dataset.refresh;
      }
    } catch {
      // The server has stopped; it may be started again.
    }
  }
  later();
}

function later() {
  const waits = [...document.querySelectorAll("[data-refresh]")].map((part) => Number(part.dataset.refresh));
  const wait = Math.min(...waits.filter(Boolean));
  if (Number.isFinite(wait)) setTimeout(refresh, wait * 1000);
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-filters] select")) event.target.form.requestSubmit();
  count();
});
// The browser's Back button restores the check boxes.
addEventListener("pageshow", count);
later();
