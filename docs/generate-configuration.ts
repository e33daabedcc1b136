/**
 * Prints the reference of the configuration, made from the schema:
 *
 *   node docs/generate-configuration.ts > docs/reference/configuration.md
 */
import { jsonSchema } from "../src/config/json-schema.ts";
import { AFTER, NOTES } from "./configuration-notes.ts";
import { code, type Row, rowsOf } from "./schema-rows.ts";

const BEFORE = `# Configuration

<!-- Made by \`node docs/generate-configuration.ts > docs/reference/configuration.md\` from the schema. Change it there: src/config/sections/*.ts, docs/configuration-notes.ts -->

The configuration is one YAML file: \`--config FILE\`, else \`$SALLYPORT_CONFIG\`, else \`config.yaml\`. [config.yaml](../../config.yaml) is an example
with every key and a comment on each. \`sallyport check\` reads the file and every file it names, and reports all errors at once, each with
file, line, column, a caret, and "did you mean". Changes of these files take effect within seconds, or are rejected as a whole;
[some keys need a restart](../operations.md#changes).

## How values are written

| type | example | meaning |
| --- | --- | --- |
| duration | \`500ms\`, \`30s\`, \`5m\`, \`1h30m\` | a number and its unit; a bare number is an error |
| size | \`512B\`, \`16KiB\`, \`10MiB\` | likewise |
| word | \`required\` | one of those in the column "values" |
| text | \`"0.0.0.0:8443"\` | one line. Relative file paths start at the directory of the configuration file |

- **References**: \`\${NAME}\`, \`\${NAME:-default}\`, \`\${NAME:?message}\` and \`\${file:/run/secrets/name}\` work in every value. They are
  resolved after parsing, so a value can never add keys. A \`$\` without \`{\` is literal, so password hashes need no escaping.
  References work in flags and variables too.
- **Environment**: \`SALLYPORT_SERVER__LISTEN\` sets \`server.listen\`: two underscores between keys; case does not matter. Write lists
  and mappings in YAML's flow style, \`["a", "b"]\`. A \`SALLYPORT_…\` variable that matches no key is an error.
  \`SALLYPORT_SHARED__PASSWORD_FILE\` names a file with the value of \`shared.password\`, and so for every key.
- **Flags**: \`--set server.listen=127.0.0.1:8443\`.
- **Precedence**: a flag wins over the environment, the environment over the file, the file over the default.
- **Unknown keys** are errors, and so are keys without a value.
- **Editors**: \`# yaml-language-server: $schema=./config.schema.json\` as the first line enables completion; \`sallyport schema\` prints that file.

In the tables, *required* says "yes" for a key that its section must have, and *default* is the value of a key that you omit.
A key with neither is optional and unset. *Values* lists the allowed values if the type does not say enough. \`[]\`
stands for each entry of a list, \`<name>\` for a name that you choose.
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
  const preset = own.preset === "" ? "" : ` Default: ${own.preset}.`;
  const required = own.required ? " This section is required." : "";
  const words = own.values === "" ? "" : ` Instead of a mapping, it can be a word: ${own.values}.`;
  return [
    `## ${own.key}\n`,
    `${own.meaning}.${required}${preset}${words}\n`,
    "| key | type | values | required | default | meaning |",
    "| --- | --- | --- | --- | --- | --- |",
    ...rows.map(line),
    "",
    ...(NOTES[own.key] === undefined ? [] : [`${NOTES[own.key]}\n`]),
  ];
}

function line({ key, type, values, required, preset, meaning }: Row): string {
  const cells = [code(key), type, values, required ? "yes" : "", preset, meaning];
  return `|${cells.map((text) => (text === "" ? " |" : ` ${text.replaceAll("|", "\\|")} |`)).join("")}`;
}

if (import.meta.main) process.stdout.write(configurationReference());
