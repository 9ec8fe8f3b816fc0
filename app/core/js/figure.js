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

// Adds the resolution (dots per inch) to a PNG: a pHYs chunk after the signature and header, which take 33 bytes.
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

// Renders an SVG drawing as a PNG with `dots` per inch.
const rasterised = async (drawing, dots) => {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([drawing], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height].map((side) => Math.round((side * dots) / CSS_INCH));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve));
  return { file: await blob.arrayBuffer(), width: image.width };
};

// Returns the maps as they are on the screen, as a file and its width in pixels.
const ofMaps = async (data) => {
  const drawing = window.bgtMaps.view.print(data);
  if (data.kind === "png") return rasterised(drawing, data.dots);
  return { file: drawing, width: (data.width / 25.4) * CSS_INCH };
};

// Returns a plotly figure, as a file and its width in pixels.
const ofFigure = async ({ figure, kind, dots }) => {
  await new Promise((resolve) => withPlotly(resolve));
  const { data: traces, layout } = JSON.parse(figure);
  const size = { width: layout.width, height: layout.height };
  const url = await Plotly.toImage({ data: traces, layout }, { format: kind, scale: kind === "png" ? dots / CSS_INCH : 1, ...size });
  return { file: await (await fetch(url)).arrayBuffer(), width: layout.width };
};

export default async function ({ data, parentElement }) {
  const line = parentElement.querySelector("div");
  line.setAttribute("role", "status");
  if (line.dataset.drawn === data.id) return; // the component was mounted again without a new click
  line.dataset.drawn = data.id;
  line.textContent = "Drawing …";
  try {
    const { file, width } = await (data.figure ? ofFigure(data) : ofMaps(data));
    const blob = data.kind === "png" ? withDensity(file, data.dots) : new Blob([file], { type: "image/svg+xml" });
    download(blob, `${data.name}.${data.kind}`);
    const wide = `${Math.round((width / CSS_INCH) * 25.4)} mm wide`;
    line.textContent = `Saved ${data.name}.${data.kind}: ` + (data.kind === "png" ? `${wide} at ${data.dots} dpi.` : `${wide}.`);
  } catch (error) {
    line.textContent = `The figure can't be drawn here: ${error.message ?? error}`;
  }
}
