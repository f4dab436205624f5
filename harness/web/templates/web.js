// Keeps what goes on up to date, and buttons in step with what is chosen. All else works without it.
"use strict";

const chosen = () => document.querySelectorAll("[data-chosen] input:checked").length;

function count() {
  const many = chosen();
  for (const button of document.querySelectorAll("[data-needs]"))
    button.disabled = button.dataset.needs === "2" ? many !== 2 : many === 0;
  const said = document.querySelector("[data-count]");
  if (said) said.textContent = many ? `${many} chosen` : "choose two to compare";
}

async function refresh() {
  // What somebody is choosing from stays as it is.
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
      // The server was ended; it may come back.
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
// A page that is come back to has its boxes as they were.
addEventListener("pageshow", count);
later();
