"use strict";
(function () {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  button.hidden = false;
  button.setAttribute("aria-pressed", String(current() === "dark"));
  button.addEventListener("click", () => {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    button.setAttribute("aria-pressed", String(current() === "dark"));
  });
  // On a phone the contents are folded: the verdict comes first.
  const contents = document.querySelector(".contents details");
  const narrow = window.matchMedia("(max-width: 44rem)");
  const fold = () => {
    contents.open = !narrow.matches;
    // A table that is wider than a phone scrolls in its own box; arrow keys reach it there.
    for (const table of document.querySelectorAll("main table")) {
      if (narrow.matches && table.scrollWidth > table.clientWidth) table.tabIndex = 0;
      else table.removeAttribute("tabindex");
    }
  };
  fold();
  narrow.addEventListener("change", fold);
  contents.addEventListener("click", (event) => { if (narrow.matches && event.target.closest("a")) contents.open = false; });
  const links = new Map(
    Array.from(document.querySelectorAll(".contents a"), (link) => [link.hash.slice(1), link])
  );
  const mark = (id) =>
    links.forEach((link, key) => {
      if (key === id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  const watcher = new IntersectionObserver(
    (entries) => entries.forEach((entry) => { if (entry.isIntersecting) mark(entry.target.id); }),
    { rootMargin: "-10% 0px -80% 0px" }
  );
  document.querySelectorAll(".chapter").forEach((chapter) => watcher.observe(chapter));
})();
