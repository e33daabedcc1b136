import { hash } from "node:crypto";
import { Html } from "../../../lib/text/html.ts";

/** All styles of the page. It loads no script, font or picture. */
const STYLE = `
:root {
  color-scheme: light dark;
  --page: #f4f6f8; --card: #ffffff; --line: #dfe5ea; --text: #17212b; --soft: #5b6975;
  --good: #137a4b; --good-soft: #dff3e8; --bad: #b3261e; --bad-soft: #fbe4e2; --warn: #8a5a00; --warn-soft: #fdf0d3;
  --accent: #17527e; --bar: #2f7fb8; --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1419; --card: #171e25; --line: #2a343e; --text: #e4eaf0; --soft: #94a3b1;
    --good: #5fd39b; --good-soft: #12352a; --bad: #ff8f86; --bad-soft: #45201e; --warn: #f2c162; --warn-soft: #3b2e12;
    --accent: #7cc0f2; --bar: #4f9fd6;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main, header > div, footer { max-width: 1180px; margin: 0 auto; padding: 0 24px; }
header { background: var(--card); border-bottom: 1px solid var(--line); }
header > div { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 16px; padding-top: 20px; padding-bottom: 16px; }
h1 { font-size: 22px; line-height: 1.2; margin: 0; letter-spacing: -0.01em; }
header p { margin: 0; color: var(--soft); }
header .when { margin-left: auto; font-variant-numeric: tabular-nums; }
header .badge { align-self: center; }
nav { flex-basis: 100%; display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 14px; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin: 16px 0; padding: 16px 20px; scroll-margin-top: 8px; }
h2 { font-size: 16px; margin: 0 0 10px; }
h2, dd, p, footer { overflow-wrap: anywhere; }
h2 small { font-weight: 400; color: var(--soft); margin-left: 8px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin: 16px 0; padding: 0; list-style: none; }
.tiles li { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; min-width: 0; }
.tiles span { display: block; color: var(--soft); font-size: 13px; }
.tiles b { display: block; font-size: 19px; line-height: 1.3; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.badge { display: inline-block; border-radius: 99px; padding: 1px 10px; font-size: 13px; font-weight: 600; white-space: nowrap; background: var(--line); color: var(--text); }
.badge.good { background: var(--good-soft); color: var(--good); }
.badge.bad { background: var(--bad-soft); color: var(--bad); }
.badge.warn { background: var(--warn-soft); color: var(--warn); }
table { width: 100%; border-collapse: collapse; font-size: 14px; }
th { text-align: left; font-weight: 500; color: var(--soft); font-size: 13px; padding: 4px 12px 6px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td { padding: 7px 12px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: break-word; }
tr:last-child > td { border-bottom: 0; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, .mono { font-family: var(--mono); font-size: 13px; overflow-wrap: anywhere; }
.when { white-space: nowrap; }
.soft { color: var(--soft); }
.bad { color: var(--bad); } .warn { color: var(--warn); }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(290px, 1fr)); gap: 14px 24px; }
figure { margin: 0; min-width: 0; }
figcaption { display: flex; justify-content: space-between; gap: 8px; font-size: 13px; }
figcaption b { font-variant-numeric: tabular-nums; }
.plots svg { display: block; width: 100%; height: 44px; }
.axis { display: flex; justify-content: space-between; color: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg .base { stroke: var(--line); stroke-width: 1; }
svg rect { fill: var(--bar); } svg .good { fill: var(--good); } svg .bad { fill: var(--bad); } svg .warn { fill: var(--warn); }
details { border-bottom: 1px solid var(--line); }
details:last-child { border-bottom: 0; }
summary { cursor: pointer; padding: 7px 0; overflow-wrap: anywhere; }
details.values summary { font-size: 14px; }
.refusal summary { display: grid; grid-template-columns: 72px 44px 190px minmax(0, 1fr) 140px; gap: 0 12px; font-size: 14px; list-style: none; }
.refusal summary::-webkit-details-marker { display: none; }
.refusal summary::after { content: none; }
.refusal[open] > summary { font-weight: 600; }
.refusal > div { padding: 2px 0 12px 84px; font-size: 14px; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 2px 16px; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
pre { margin: 8px 0 0; padding: 8px 10px; background: var(--page); border-radius: 6px; font-family: var(--mono); font-size: 13px; white-space: pre-wrap; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 13px; padding-bottom: 32px; }
@media (max-width: 720px) {
  main, header > div, footer { padding-left: 14px; padding-right: 14px; }
  section { padding: 14px; }
  .tiles { grid-template-columns: 1fr 1fr; gap: 8px; }
  .tiles li { padding: 10px 12px; }
  .tiles b { font-size: 18px; }
  header .when { margin-left: 0; }
  thead { display: none; }
  table, tbody { display: block; }
  tr { display: grid; grid-template-columns: 100px minmax(0, 1fr); gap: 2px 10px; padding: 8px 0; border-bottom: 1px solid var(--line); }
  tr:last-child { border-bottom: 0; }
  td { display: contents; }
  td::before { content: attr(data-label); color: var(--soft); font-size: 13px; }
  .number { text-align: left; }
  .refusal summary { grid-template-columns: 68px 40px minmax(0, 1fr); }
  .refusal summary > :nth-child(n + 4) { grid-column: 1 / -1; }
  .refusal > div { padding-left: 0; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: 6px; }
}
@media print { body { background: none; } section, .tiles li { break-inside: avoid; } }
`;

/** The complete element, since the policy contains the hash of its content. */
export const STYLE_ELEMENT = new Html(`<style>${STYLE}</style>`);

/** Allows this style and nothing else: no script, no form, no frame, no external resource. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash("sha256", STYLE, "base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
