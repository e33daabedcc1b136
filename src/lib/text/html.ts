/** Text that is already HTML. Only the template function below and constants of this folder create it. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | false | undefined | readonly Part[];

/** Creates HTML from a template. Escapes all parts that are not `Html`, also for quoted attributes. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(
    strings.map((text, index) => (index === 0 ? text : written(parts[index - 1]) + text)).join(""),
  );
}

function written(part: Part): string {
  if (part === undefined || part === false) return "";
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
