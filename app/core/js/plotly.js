// Runs the callback once plotly.js is there; all components of a tab share one copy.
function withPlotly(callback) {
  if (window.Plotly) return callback();
  if (!window.bgtPlotly) {
    const script = document.createElement("script");
    // pages lie one step below the app's root, wherever that is
    script.src = new URL("component/app.core.address.plotly_js/plotly.min.js", new URL(".", location.href)).href;
    window.bgtPlotly = new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${script.src} can't be loaded`));
    });
    document.head.appendChild(script);
  }
  window.bgtPlotly.then(callback);
}
