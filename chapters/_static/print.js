/* On paper nothing can be unfolded, and light letters cannot be read. */
{
  const page = document.documentElement;
  let theme, opened;
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach(details => (details.open = true));
    document.querySelectorAll("img").forEach(image => (image.loading = "eager"));
    theme = page.dataset.theme;
    page.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    opened.forEach(details => (details.open = false));
    page.dataset.theme = theme;
  });
}
