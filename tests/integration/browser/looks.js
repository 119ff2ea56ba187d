// What is wrong with the page as it is shown: one line of text for each fault.
(() => {
  const faults = [];
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const named = (element) =>
    `<${element.tagName}${element.id ? ` id=${element.id}` : ""} class=${
      element.getAttribute("class") || ""
    }> ${(element.textContent || "").trim().slice(0, 40)}`;

  for (const details of all("details")) details.open = true;

  // Nothing is cut off.
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth)
    faults.push(`the page is ${page.scrollWidth} wide on ${page.clientWidth}`);
  for (const part of all(".scroll, pre, figure, section, header"))
    if (part.scrollWidth > part.clientWidth + 1)
      faults.push(`cut off, ${part.scrollWidth} in ${part.clientWidth}: ${named(part)}`);
  for (const text of all("svg text, td, th, dd, li, h1, h2, h3, figcaption")) {
    const box = text.getBoundingClientRect();
    if (box.width && !text.closest("thead, .unseen") && (box.left < -0.5 || box.right > page.clientWidth + 0.5))
      faults.push(`beyond the edge, ${box.left} to ${box.right}: ${named(text)}`);
  }

  // Charts are drawn, and are something to those who do not see them.
  for (const chart of all("svg[role=img]")) {
    const box = chart.getBoundingClientRect();
    if (box.width < 100 || box.height < 20) faults.push(`not drawn: ${named(chart)}`);
    const drawn = all("path, rect, line, circle", chart).filter((shape) => {
      const { width, height } = shape.getBoundingClientRect();
      return width > 0 || height > 0;
    });
    if (drawn.length === 0) faults.push(`empty: ${named(chart)}`);
    const words = (chart.getAttribute("aria-labelledby") || "").split(" ");
    for (const id of words)
      if (!(document.getElementById(id)?.textContent.trim()))
        faults.push(`without a text in place of it: ${named(chart)}`);
    const frame = (chart.closest("figure, .strips") || chart).getBoundingClientRect();
    for (const text of all("text", chart)) {
      const inner = text.getBoundingClientRect();
      if (inner.width === 0) continue;
      if (inner.left < frame.left - 1 || inner.right > frame.right + 1 ||
          inner.top < frame.top - 1 || inner.bottom > frame.bottom + 1)
        faults.push(`outside its chart: ${named(text)}`);
      if (parseFloat(getComputedStyle(text).fontSize) < 11) faults.push(`too small: ${named(text)}`);
    }
    for (const axis of all(".marks-x, .marks-y", chart)) {
      const boxes = all("text", axis).map((text) => text.getBoundingClientRect()).filter((it) => it.width);
      boxes.forEach((one, index) => boxes.slice(index + 1).forEach((other) => {
        if (one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom)
          faults.push(`marks of an axis overlap: ${named(axis)}`);
      }));
    }
  }
  for (const figure of all("figure"))
    if (!figure.querySelector("details table")) faults.push(`without its numbers: ${named(figure)}`);

  // Ids are one of a kind, headings in order.
  const ids = all("[id]").map((element) => element.id);
  if (new Set(ids).size < ids.length) faults.push(`ids that are there twice: ${ids}`);
  const levels = all("h1, h2, h3, h4").map((heading) => Number(heading.tagName[1]));
  if (levels[0] !== 1 || levels.filter((level) => level === 1).length !== 1) faults.push("not one h1");
  levels.forEach((level, index) => {
    if (index && level > levels[index - 1] + 1) faults.push(`a heading of level ${level} after ${levels[index - 1]}`);
  });
  if (!page.lang) faults.push("no language");

  // Words can be read: a contrast of 4.5 to 1 (WCAG 2, 1.4.3).
  const luminance = (colour) => {
    const [red, green, blue] = colour.match(/[\d.]+/g).map(Number).map((it) => {
      const share = it / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    for (let it = element; it; it = it.parentElement) {
      const colour = getComputedStyle(it).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)" && colour !== "transparent") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  for (const element of all("h1, h2, h3, p, li, th, td, dt, strong, span, small, code, figcaption, summary, svg text")) {
    if (!element.textContent.trim() || element.closest(".skip")) continue;
    const style = getComputedStyle(element);
    const onPart = element.matches(".on-part") && element.parentElement.querySelector(".part");
    const behind = onPart ? getComputedStyle(onPart).fill : ground(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const found = contrast(colour, behind);
    if (found < 4.5) faults.push(`hard to read, ${found.toFixed(2)} to 1: ${named(element)}`);
  }
  // Lines and marks: 3 to 1 (WCAG 2, 1.4.11).
  for (const shape of all(".curve, .held-line, .limit, .base, .part, .swatch, .cross")) {
    if (shape.closest(".of-free, .of-margin, .of-reserve, .of-held-by-others, .of-driver")) continue;
    const style = getComputedStyle(shape);
    const colour = shape.matches(".part") ? style.fill : shape.matches(".swatch") ? style.backgroundColor : style.stroke;
    const found = contrast(colour, getComputedStyle(document.body).backgroundColor);
    if (found < 3) faults.push(`hard to see, ${found.toFixed(2)} to 1: ${named(shape)}`);
  }
  return { faults: [...new Set(faults)], ground: getComputedStyle(document.body).backgroundColor,
           charts: all("svg[role=img]").length };
})()
