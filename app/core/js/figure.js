// Draws a figure off the screen and saves it as a file.
const CSS_INCH = 96; // pixels

const crc32 = (bytes) => {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
};

// A PNG with the chunk that says how many dots an inch of it has; it follows the header, which takes 33 bytes.
const withDensity = (png, dots) => {
  const chunk = new DataView(new ArrayBuffer(21));
  chunk.setUint32(0, 9);
  [..."pHYs"].forEach((letter, at) => chunk.setUint8(4 + at, letter.charCodeAt(0)));
  const dotsPerMetre = Math.round(dots / 0.0254);
  chunk.setUint32(8, dotsPerMetre);
  chunk.setUint32(12, dotsPerMetre);
  chunk.setUint8(16, 1); // the unit is the metre
  chunk.setUint32(17, crc32(new Uint8Array(chunk.buffer, 4, 13)));
  return new Blob([png.slice(0, 33), chunk.buffer, png.slice(33)], { type: "image/png" });
};

const download = (blob, name) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};

export default function ({ data, parentElement }) {
  const line = parentElement.querySelector("div");
  line.setAttribute("role", "status");
  if (line.dataset.drawn === data.id) return; // mounted again, for another reason than a click
  line.dataset.drawn = data.id;
  line.textContent = "Drawing …";
  withPlotly(async () => {
    const { data: traces, layout } = JSON.parse(data.figure);
    const scale = data.kind === "png" ? data.dots / CSS_INCH : 1;
    const size = { width: layout.width, height: layout.height };
    try {
      const url = await Plotly.toImage({ data: traces, layout }, { format: data.kind, scale, ...size });
      const file = await (await fetch(url)).arrayBuffer();
      const blob = data.kind === "png" ? withDensity(file, data.dots) : new Blob([file], { type: "image/svg+xml" });
      download(blob, `${data.name}.${data.kind}`);
      const wide = `${Math.round((layout.width / CSS_INCH) * 25.4)} mm wide`;
      line.textContent = `Saved ${data.name}.${data.kind}: ` + (data.kind === "png" ? `${wide} at ${data.dots} dpi.` : `${wide}.`);
    } catch (error) {
      line.textContent = `The figure can't be drawn here: ${error.message ?? error}`;
    }
  });
}
