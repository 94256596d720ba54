// A drawn chart as a picture that stands alone: CSS variables become their present colours, the
// title is written above, and the background is the page's.
import { kSvg, s } from '../dom';

const kHead = 34;
const kPad = 12;

export function svg_text(drawn: SVGSVGElement, title: string): string {
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  for (const transient of copy.querySelectorAll('.transient')) transient.remove();
  for (const attribute of ['tabindex', 'class', 'style']) copy.removeAttribute(attribute);
  const [, , width, height] = (copy.getAttribute('viewBox') ?? '0 0 0 0').split(' ').map(Number);
  const box = { w: width! + 2 * kPad, h: height! + kHead + kPad };
  copy.setAttribute('xmlns', kSvg);
  copy.setAttribute('viewBox', `${-kPad} ${-kHead} ${box.w} ${box.h}`);
  copy.setAttribute('width', String(box.w));
  copy.setAttribute('height', String(box.h));
  copy.prepend(
    s('rect', { x: -kPad, y: -kHead, width: box.w, height: box.h, style: 'fill:var(--paper)' }),
    s('text', { x: 0, y: -10, style: 'fill:var(--ink);font-size:15px;font-weight:600' }, title),
  );
  const colours = getComputedStyle(document.documentElement);
  return new XMLSerializer()
    .serializeToString(copy)
    .replace(/var\((--[\w-]+)\)/g, (_, name: string) => colours.getPropertyValue(name).trim());
}

export async function png_blob(drawn: SVGSVGElement, title: string, scale = 2): Promise<Blob> {
  const text = svg_text(drawn, title);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.width * scale;
  canvas.height = image.height * scale;
  const context = canvas.getContext('2d')!;
  context.scale(scale, scale);
  context.drawImage(image, 0, 0, image.width, image.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('no picture'))), 'image/png');
  });
}
