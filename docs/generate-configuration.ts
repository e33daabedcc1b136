/**
 * Prints the reference of the configuration, made from the schema:
 *
 *   node docs/generate-configuration.ts > docs/configuration.md
 */
import { jsonSchema } from "../src/config/json-schema.ts";
import { AFTER, NOTES } from "./configuration-notes.ts";
import { code, type Row, rowsOf } from "./schema-rows.ts";

const BEFORE = `# Configuration

<!-- Made by \`node docs/generate-configuration.ts > docs/configuration.md\` from the schema. Change it there: src/config/schema-*.ts, docs/configuration-notes.ts -->

One YAML file. Which one: \`--config FILE\`, else \`$SALLYPORT_CONFIG\`, else \`config.yaml\`. [config.yaml](../config.yaml) is an example
with every key and a comment on each. \`sallyport check\` reads the file and everything that it names, and tells all that is wrong at once.

## How values are written

| type | example | meaning |
| --- | --- | --- |
| duration | \`500ms\`, \`30s\`, \`5m\`, \`1h30m\` | a number without its unit is an error |
| size | \`512B\`, \`16KiB\`, \`10MiB\` | the same |
| word | \`required\` | one of those in the column "allowed" |
| text | \`"0.0.0.0:8443"\` | one line. A path of a file that is relative starts at the configuration file |

- **References**: \`\${NAME}\`, \`\${NAME:-default}\`, \`\${NAME:?message}\` and \`\${file:/run/secrets/name}\` may stand in any value. They are
  resolved after parsing, so a value can never add keys. A \`$\` without \`{\` means itself: hashes of passwords need no doubling.
  In a flag or a variable they mean the same.
- **Environment**: \`SALLYPORT_SERVER__LISTEN\` sets \`server.listen\`: two underscores between keys, letter case does not count. Lists and
  mappings are written in YAML's flow style, \`["a", "b"]\`. A variable \`SALLYPORT_…\` that sets nothing known is an error.
- **Flags**: \`--set server.listen=127.0.0.1:8443\`.
- **Precedence**: a flag, then the environment, then the file, then the default.
- **Unknown keys** are errors, with "did you mean". A key with nothing behind it is an error, too.
- **Editors**: \`# yaml-language-server: $schema=./config.schema.json\` in the first line; \`sallyport schema\` prints that file.

The column "default" is empty where nothing is set when the key is left out. \`[]\` stands for each entry of a list, \`<name>\` for a name
that you choose.
`;

/** The whole document, with a line break at the end. */
export function configurationReference(): string {
  const { properties = {}, required = [] } = jsonSchema();
  const sections = Object.entries(properties).flatMap(([name, schema]) =>
    typeof schema === "object" ? section(rowsOf(name, schema, required.includes(name))) : [],
  );
  return [BEFORE, ...sections, AFTER].join("\n");
}

/** The first row is the section itself. */
function section([own, ...rows]: readonly Row[]): string[] {
  if (own === undefined) return [];
  const preset =
    own.preset === ""
      ? ""
      : ` (${own.preset === "required" ? "required" : `default: ${own.preset}`})`;
  const words = own.allowed === "" ? "" : ` A ${own.type}; as a word: ${own.allowed}.`;
  return [
    `## ${own.key}\n`,
    `${own.meaning}${preset}.${words}\n`,
    "| key | type | allowed | default | meaning |",
    "| --- | --- | --- | --- | --- |",
    ...rows.map(line),
    "",
    ...(NOTES[own.key] === undefined ? [] : [`${NOTES[own.key]}\n`]),
  ];
}

function line({ key, type, allowed, preset, meaning }: Row): string {
  const cells = [code(key), type, allowed, preset, meaning];
  return `|${cells.map((text) => (text === "" ? " |" : ` ${text.replaceAll("|", "\\|")} |`)).join("")}`;
}

if (import.meta.main) process.stdout.write(configurationReference());
