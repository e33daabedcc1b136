/** Text that is already HTML. Only the template function below and constants of this folder create it. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | undefined | readonly Part[];

/** Creates HTML from a template. Escapes all parts that are not `Html`, also for quoted attributes. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(
    strings.map((text, index) => (index === 0 ? text : written(parts[index - 1]) + text)).join(""),
  );
}

function written(part: Part): string {
  if (part === undefined) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "string") return escapeHtml(part);
  return typeof part === "number" ? String(part) : part.map(written).join("");
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Characters that are replaced: control characters, and those that change the direction of text. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

function escapeHtml(text: string): string {
  return text
    .replaceAll(UNSAFE, "\uFFFD")
    .replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? "");
}

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
