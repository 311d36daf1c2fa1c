/* On paper nothing can be unfolded, and light letters cannot be read. A browser leaves
   single lines behind where it cannot have enough on both sides of a break: what is that
   short stays whole. */
{
  const page = document.documentElement;
  const short = element => {
    const style = getComputedStyle(element);
    const height = element.clientHeight - 2 * parseFloat(style.paddingTop);
    const lines = Math.round(height / parseFloat(style.lineHeight));
    return lines < Number(style.orphans) + Number(style.widows);
  };
  let theme, opened;
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach(details => (details.open = true));
    document.querySelectorAll("img").forEach(image => (image.loading = "eager"));
    theme = page.dataset.theme;
    page.dataset.theme = "light";
    [...document.querySelectorAll(".bd-article :is(p, li, pre)")]
      .filter(short)
      .forEach(element => (element.style.breakInside = "avoid"));
  });
  addEventListener("afterprint", () => {
    opened.forEach(details => (details.open = false));
    page.dataset.theme = theme;
  });
}
