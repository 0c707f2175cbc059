(function () {
  "use strict";
  var root = document.documentElement, saved = null;
  root.className = "scripted";
  try { saved = localStorage.getItem("gpuctl-theme"); } catch (error) { /* a page from disk may have no storage */ }
  if (saved !== "dark" && saved !== "light") {
    saved = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  root.dataset.theme = saved;
})();
