/** Prints a picture of the status page: its own HTML and style in an SVG, so that it is light or dark like its reader. */
import { renderStatus } from "../../src/server/admin/status/render-status.ts";
import { SAMPLE_STATUS } from "./sample-status.ts";

const WIDTH = 1_000;
const HEIGHT = 680;

/** The first sections of the page: what fits into the picture. */
export function statusPicture(): string {
  const page = renderStatus(SAMPLE_STATUS);
  const style = between(page, "<style>", "</style>")
    .replaceAll(/^body \{/gm, ".page {")
    .replaceAll(/\s+/g, " ");
  const body = between(page, "<body>", '<section id="routes">')
    .replaceAll(/<title>[^<]*<\/title>/g, "")
    .replaceAll(/<svg\s/g, '<svg xmlns="http://www.w3.org/2000/svg" ')
    .replaceAll(/\s+/g, " ");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="The status page of Sallyport">
<style>${style}</style>
<foreignObject width="${WIDTH}" height="${HEIGHT}">
<div xmlns="http://www.w3.org/1999/xhtml" class="page">${body}</main></div>
</foreignObject>
</svg>
`;
}

function between(text: string, from: string, to: string): string {
  const start = text.indexOf(from) + from.length;
  const end = text.indexOf(to, start);
  if (start < from.length || end < 0) throw new Error(`the page has no ${from} before ${to}`);
  return text.slice(start, end);
}

if (import.meta.main) process.stdout.write(statusPicture());
