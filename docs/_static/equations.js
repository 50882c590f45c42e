// Display equations that are wider than their column are made smaller until they fit, down to
// LEAST of their size; what is wider still scrolls.
const LEAST = 0.6;

function fit(equation) {
  equation.style.fontSize = "";
  const room = equation.clientWidth;
  const ratio = room / equation.scrollWidth;
  if (room && ratio < 1) {
    equation.style.fontSize = `${100 * Math.max(LEAST, 0.99 * ratio)}%`;
  }
}

function fitAll() {
  document.querySelectorAll('mjx-container[display="true"]').forEach(fit);
}

window.addEventListener("load", () => {
  if (window.MathJax?.startup?.promise) {
    window.MathJax.startup.promise.then(() => {
      fitAll();
      window.addEventListener("resize", fitAll);
    });
  }
});
