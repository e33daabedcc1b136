import { readDocument } from "../docs/markdown.ts";

/** One entry: a heading of the third level, with the section that it stands in. */
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

/** The entries of one section, in their order. */
export function entries(section: string): Entry[] {
  return all.filter((entry) => entry.section === section);
}

/** Where a heading can be linked to: in lower case, without punctuation, hyphens for blanks. */
export function linkTo(heading: string): string {
  const words = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}_ -]/gu, "");
  return `${RUNBOOK}#${words.replaceAll(" ", "-")}`;
}
