import { type Html, html } from "./html.ts";

type Cell = Html | string | number | undefined;

/**
 * Creates a table that turns into labelled blocks on narrow screens. A column whose title begins with `>` holds
 * numbers, which are aligned to the right.
 */
export function table(titles: readonly string[], rows: readonly (readonly Cell[])[]): Html {
  const columns = titles.map((title) => ({
    title: title.replace(">", ""),
    kind: title.startsWith(">") ? "number" : "",
  }));
  return html`<table>
    <thead>
      <tr>
        ${columns.map(({ title, kind }) => html`<th scope="col" class="${kind}">${title}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            ${columns.map(({ title, kind }, index) => html`<td class="${kind}" data-label="${title}"><span>${row[index]}</span></td>`)}
          </tr> `,
      )}
    </tbody>
  </table>`;
}

export type Tone = "good" | "bad" | "warn" | "plain";

export function badge(tone: Tone, text: string): Html {
  return html`<span class="badge ${tone}">${text}</span>`;
}

export function section(
  id: string,
  title: string,
  note: string,
  ...content: readonly Html[]
): Html {
  return html`<section id="${id}">
    <h2>${title}<small>${note}</small></h2>
    ${content}
  </section> `;
}
