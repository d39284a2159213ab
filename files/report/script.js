"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));
  const store = {
    get: () => { try { return localStorage.getItem("colocation-theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("colocation-theme", value); } catch { /* private window: not kept */ } },
  };

  const asked = new URLSearchParams(location.search).get("theme");
  const chosen = asked || store.get();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  const toggle = document.getElementById("theme");
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    store.set(root.dataset.theme);
  });

  const conditions = document.getElementById("condition-chooser");
  if (conditions) {
    const show = () => all("[data-condition]").forEach((part) => { part.hidden = part.dataset.condition !== conditions.value; });
    conditions.addEventListener("change", show);
    show();
  }

  all("select.chart-chooser").forEach((select) => {
    const card = select.closest("figure");
    const show = () => all("[data-chart]", card).forEach((chart) => { chart.hidden = chart.dataset.chart !== select.value; });
    select.addEventListener("change", show);
    show();
  });

  all("button.copy").forEach((button) => {
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });

  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      links.forEach((link) => link.removeAttribute("aria-current"));
      const link = links.get(entry.target.id);
      if (link) link.setAttribute("aria-current", "true");
    });
  }, { rootMargin: "-15% 0px -75% 0px" });
  all("main > section[id]").forEach((section) => seen.observe(section));
})();
