// Moves the focus into a popover that opens, so that the Tab key reaches its controls and screen readers announce it.
// Streamlit draws popovers at the end of the page and leaves the focus on the button. Escape returns it to the button.
if (!window.bgtPopover) {
  window.bgtPopover = new MutationObserver(() => {
    const opened = document.querySelector("[data-testid=stPopoverBody]:not([tabindex])");
    if (!opened) return;
    opened.tabIndex = -1;
    opened.style.outline = "none"; // the popover has a border of its own
    if (!opened.contains(document.activeElement)) opened.focus({ preventScroll: true });
  });
  window.bgtPopover.observe(document.body, { childList: true, subtree: true });
}
