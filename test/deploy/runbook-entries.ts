import { readDocument } from "../docs/markdown.ts";

/** One entry: a third-level heading, with the section that contains it. Headings in a row share the text of the last. */
interface Entry {
  readonly section: string;
  readonly heading: string;
  readonly text: string;
}

const RUNBOOK = "docs/runbook.md";
export const runbook = readDocument(RUNBOOK);

const all = [...runbook.text.matchAll(/^## (.+)\n((?:(?!^## ).*\n)*)/gm)].flatMap(
  ([, section = "", body = ""]): Entry[] =>
    [...body.matchAll(/((?:^### .+\n\n*)+)((?:(?!^### ).*\n)*)/gm)].flatMap(
      ([, headings = "", text = ""]) =>
        [...headings.matchAll(/^### (.+)/gm)].map(([, heading = ""]) => ({
          section,
          heading,
          text,
        })),
    ),
);

/** The section with the alerts and the messages, and the headings in it that are alerts. */
const SECTION = "Alerts and messages of the log";
const isAlert = ({ heading }: Entry): boolean => /^Sallyport[A-Z]/.test(heading);
export const alertEntries = entries(SECTION).filter(isAlert);
export const messageEntries = entries(SECTION).filter((entry) => !isAlert(entry));

/** Returns the entries of one section in order. */
export function entries(section: string): Entry[] {
  return all.filter((entry) => entry.section === section);
}

/** Returns the anchor of a heading: in lower case, without punctuation, with hyphens for spaces. */
export function linkTo(heading: string): string {
  const words = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}_ -]/gu, "");
  return `${RUNBOOK}#${words.replaceAll(" ", "-")}`;
}
