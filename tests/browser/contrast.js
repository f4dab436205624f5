// The texts of a page whose contrast is less than WCAG 2.2 asks for at level AA (1.4.3).
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  // Any colour that CSS can say, as [red, green, blue, alpha] of 0 to 255 and 0 to 1.
  const parsed = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = "#000";
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, bottom) => {
    const alpha = top[3] + bottom[3] * (1 - top[3]);
    if (!alpha) return [0, 0, 0, 0];
    const mixed = [0, 1, 2].map(
      (i) => (top[i] * top[3] + bottom[i] * bottom[3] * (1 - top[3])) / alpha,
    );
    return [...mixed, alpha];
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const canvasColour = matchMedia("(prefers-color-scheme: dark)").matches &&
    getComputedStyle(document.documentElement).colorScheme.includes("dark")
    ? [18, 18, 18, 1]
    : [255, 255, 255, 1];

  // What lies below an element: the grounds of it and of what it is in.
  const ground = (element) => {
    let found = [0, 0, 0, 0];
    for (let at = element; at; at = at.parentElement) {
      found = over(found, parsed(getComputedStyle(at).backgroundColor));
      if (found[3] > 0.999) return found;
    }
    return over(found, canvasColour);
  };
  // Below a text in a drawing: the last shapes that were drawn around its middle.
  const drawnBelow = (text) => {
    const drawing = text.ownerSVGElement;
    // A text with a halo lies on its halo.
    const { paintOrder, stroke, strokeWidth } = getComputedStyle(text);
    if (paintOrder.startsWith("stroke") && parseFloat(strokeWidth) >= 3) {
      return over(parsed(stroke), ground(drawing));
    }
    const box = text.getBoundingClientRect();
    const x = box.x + box.width / 2;
    const y = box.y + box.height / 2;
    let found = ground(drawing);
    for (const shape of drawing.querySelectorAll("rect, circle")) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
      const around = shape.getBoundingClientRect();
      if (x < around.left || x > around.right || y < around.top || y > around.bottom) continue;
      const style = getComputedStyle(shape);
      if (style.fill === "none" || style.fill.startsWith("url")) continue;
      const [r, g, b, a] = parsed(style.fill);
      found = over([r, g, b, a * style.fillOpacity * style.opacity], found);
    }
    return found;
  };

  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element)) continue;
    seen.add(element);
    if (element.closest("script, style, title, :disabled, option")) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement;
    const below = drawn ? drawnBelow(element) : ground(element);
    let colour = parsed(drawn ? style.fill : style.color);
    let opacity = drawn ? Number(style.fillOpacity) : 1;
    for (let at = element; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
    colour = over([colour[0], colour[1], colour[2], colour[3] * opacity], below);
    const [dark, light] = [luminance(colour), luminance(below)].sort((a, b) => a - b);
    const ratio = (light + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) {
      faint.push({
        text: element.textContent.trim().slice(0, 60),
        ratio: Math.round(ratio * 100) / 100,
        colour: colour.slice(0, 3).map(Math.round).join(" "),
        ground: below.slice(0, 3).map(Math.round).join(" "),
      });
    }
  }
  return faint;
}
