/** Charts as files. Styles are inlined into the file, which has no stylesheet. */

export type Kind = 'svg' | 'png';

/** Style properties that a picture needs, with the colours of the current theme. */
const STYLES = [
  'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linejoin', 'stroke-linecap',
  'opacity', 'font-family', 'font-size', 'font-weight', 'text-anchor', 'dominant-baseline', 'visibility', 'paint-order',
] as const;

/** Dots per pixel of a PNG. */
const DENSITY = 2;

export function save(name: string, type: string, content: BlobPart) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  // The browser reads the URL after this turn of the event loop.
  setTimeout(() => { URL.revokeObjectURL(link.href); }, 10_000);
}

/** Saves the charts inside an element. One drawn on a canvas is the same bitmap in both formats. */
export async function savePicture(place: HTMLElement, name: string, kind: Kind): Promise<void> {
  const svg = svgOf(place);
  if (svg === null) throw new Error('nothing is drawn yet');
  if (kind === 'svg') {
    save(`${name}.svg`, 'image/svg+xml', svg.text);
    return;
  }
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg.text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [svg.width * DENSITY, svg.height * DENSITY];
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser has no canvas for a PNG');
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => { canvas.toBlob(done, 'image/png'); });
  if (!blob) throw new Error(`a picture of ${svg.width} × ${svg.height} pixels is too large for this browser`);
  save(`${name}.png`, 'image/png', blob);
}

interface Picture {
  text: string;
  width: number;
  height: number;
}

/** Every chart inside an element at its position, on the page's background colour. */
function svgOf(place: HTMLElement): Picture | null {
  const charts = [...place.querySelectorAll('svg, canvas, [data-boxes]')].filter((chart) => chart.closest('.swatch, .tools') === null && chart.parentElement?.closest('svg') === null);
  const around = place.getBoundingClientRect();
  const [width, height] = [Math.ceil(around.width), Math.ceil(around.height)];
  if (charts.length === 0 || width === 0 || height === 0) return null;
  const root = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [key, value] of Object.entries({ xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}` })) {
    root.setAttribute(key, String(value));
  }
  const paper = document.createElementNS(root.namespaceURI, 'rect');
  for (const [key, value] of Object.entries({ width, height, fill: getComputedStyle(document.body).backgroundColor })) {
    paper.setAttribute(key, String(value));
  }
  root.append(paper);
  for (const chart of charts) {
    const { left, top, width, height } = chart.getBoundingClientRect();
    const copy = chart instanceof HTMLCanvasElement ? imageOf(chart) : chart instanceof HTMLElement ? boxes(chart) : styled(chart);
    for (const [key, value] of Object.entries({ x: left - around.left, y: top - around.top, width, height })) copy.setAttribute(key, String(value));
    root.append(copy);
  }
  return { text: new XMLSerializer().serializeToString(root), width, height };
}

function imageOf(canvas: HTMLCanvasElement): Element {
  const image = document.createElementNS('http://www.w3.org/2000/svg', 'image');
  image.setAttribute('href', canvas.toDataURL('image/png'));
  return image;
}

function styled(svg: Element): Element {
  const copy = svg.cloneNode(true) as Element;
  copy.removeAttribute('style');
  copy.querySelectorAll('style').forEach((style) => { style.remove(); });
  const of = [svg, ...svg.querySelectorAll(':not(style)')];
  const to = [copy, ...copy.querySelectorAll('*')];
  of.forEach((element, nth) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (value !== '') to[nth]?.setAttribute(name, value);
    }
    to[nth]?.removeAttribute('class');
  });
  return copy;
}

/** Approximate width of a letter in a box, and of the box's padding, in pixels. */
const LETTER = 6.4;
const PADDING = 4;

/** A chart of HTML boxes, such as a flame graph, as rectangles with as much of their names as fits. */
function boxes(chart: HTMLElement): Element {
  const picture = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const around = chart.getBoundingClientRect();
  const put = (name: string, attributes: Record<string, string | number>, text = '') => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    element.textContent = text;
    picture.append(element);
  };
  for (const box of chart.children) {
    const { left, top, width, height } = box.getBoundingClientRect();
    const { backgroundColor, color, fontFamily, fontSize, opacity } = getComputedStyle(box);
    const [x, y] = [left - around.left, top - around.top];
    put('rect', { x, y, width: Math.max(0, width - 0.5), height, fill: plain(backgroundColor), 'fill-opacity': opacity });
    const name = box.textContent.slice(0, Math.floor((width - 2 * PADDING) / LETTER));
    if (name.length > 2) put('text', { x: x + PADDING, y: y + height * 0.72, fill: plain(color), 'font-family': fontFamily, 'font-size': fontSize }, name);
  }
  return picture;
}

const COLOURS = new Map<string, string>();

/** A colour that every program supports: the notation of mixed colours is known to browsers only. */
function plain(colour: string): string {
  const known = COLOURS.get(colour);
  if (known !== undefined) return known;
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [1, 1];
  const context = canvas.getContext('2d');
  if (!context) return colour;
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const found = `rgb(${[...context.getImageData(0, 0, 1, 1).data].slice(0, 3).join(', ')})`;
  COLOURS.set(colour, found);
  return found;
}
