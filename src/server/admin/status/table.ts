import { type Html, html } from "./html.ts";

export interface Column {
  readonly title: string;
  /** Numbers are aligned to the right. */
  readonly number?: true;
}

export type Cell = Html | string | number | undefined;

/** Creates a table that turns into labelled blocks on narrow screens. */
export function table(columns: readonly Column[], rows: readonly (readonly Cell[])[]): Html {
  const classOf = ({ number }: Column): string => (number === true ? "number" : "");
  return html`<table>
    <thead>
      <tr>
        ${columns.map((column) => html`<th scope="col" class="${classOf(column)}">${column.title}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            ${columns.map((column, index) => html`<td class="${classOf(column)}" data-label="${column.title}"><span>${row[index]}</span></td>`)}
          </tr> `,
      )}
    </tbody>
  </table>`;
}

type BadgeTone = "good" | "bad" | "warn" | "plain";

export function badge(tone: BadgeTone, text: string): Html {
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
