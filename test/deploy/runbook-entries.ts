import { readDocument } from "../docs/markdown.ts";

/** One entry: a third-level heading, with the section that contains it. */
interface Entry {
  readonly section: string;
  readonly heading: string;
  readonly text: string;
}

const RUNBOOK = "docs/runbook.md";
export const runbook = readDocument(RUNBOOK);

const all = [...runbook.text.matchAll(/^## (.+)\n((?:(?!^## ).*\n)*)/gm)].flatMap(
  ([, section = "", body = ""]): Entry[] =>
    [...body.matchAll(/^### (.+)\n((?:(?!^### ).*\n)*)/gm)].map(([, heading = "", text = ""]) => ({
      section,
      heading,
      text,
    })),
);

/** Returns the entries of one section in order. */
export function entries(section: string): Entry[] {
  return all.filter((entry) => entry.section === section);
}

/** Returns the anchor of a heading: in lower case, without punctuation, with hyphens for spaces. */
export function linkTo(heading: string): string {
  const words = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}_ -]/gu, "");
  return `${RUNBOOK}#${words.replaceAll(" ", "-")}`;
}
