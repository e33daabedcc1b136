/**
 * Prints the reference of the configuration, made from the schema:
 *
 *   node docs/generate-configuration.ts > docs/reference/configuration.md
 */
import { jsonSchema } from "../src/config/schema-parts.ts";
import { EXAMPLES, NOTES } from "./configuration-notes.ts";
import { code, type Row, rowsOf } from "./schema-rows.ts";

const BEFORE = `# Configuration

<!-- Made by \`npm run docs:configuration\` from src/config/sections/*.ts and docs/configuration-notes.ts -->

The configuration is one YAML file: \`--config FILE\`, else \`$SALLYPORT_CONFIG\`, else \`config.yaml\`. [config.yaml](../../config.yaml) is an example
with comments. \`sallyport check\` reads the file and every file it names, and reports all errors at once, with line and column. Changes of
these files take effect within seconds, or are rejected as a whole; [some keys need a restart](../operations.md#changes).

## How values are written

- **Durations** are \`500ms\`, \`30s\`, \`5m\` or \`1h30m\`, **sizes** \`512B\`, \`16KiB\` or \`10MiB\`; a number without a unit is an error.
- **Relative paths** of files start at the directory of the configuration file.
- **References**: \`\${NAME}\`, \`\${NAME:-default}\`, \`\${NAME:?message}\` and \`\${file:/run/secrets/name}\` work in every value, also in flags
  and variables. They are resolved after parsing, so a value can never add keys. A \`$\` without \`{\` is literal.
- **Environment**: \`SALLYPORT_SERVER__LISTEN\` sets \`server.listen\`: two underscores between keys; case does not matter. Lists and mappings
  are in YAML's flow style, \`["a", "b"]\`. A \`SALLYPORT_…\` variable that matches no key is an error.
  \`SALLYPORT_SHARED__PASSWORD_FILE\` names a file with the value of \`shared.password\`, and so for every key.
- **Flags**: \`--set server.listen=127.0.0.1:8443\` wins over the environment, the environment over the file, the file over the default.
- **Errors** are unknown keys, and keys without a value.
- **Editors** complete keys with \`# yaml-language-server: $schema=./config.schema.json\` as the first line; \`sallyport schema\` prints that file.

In the tables, the type comes first, unless it is a text or a mapping, and the **default** in bold, whose form shows the type. A *required*
key must be there if its mapping is. \`[]\` stands for each entry of a list, \`<name>\` for a name that you choose.
`;

/** The whole document, with a line break at the end. */
export function configurationReference(): string {
  const { properties = {}, required = [] } = jsonSchema();
  const sections = Object.entries(properties).flatMap(([name, schema]) =>
    typeof schema === "object" ? section(rowsOf(name, schema, required.includes(name))) : [],
  );
  return [BEFORE, ...sections].join("\n");
}

/** The first row is the section itself. */
function section([own, ...rows]: readonly Row[]): string[] {
  if (own === undefined) return [];
  const kinds = [...new Set(rows.map(({ kind }) => kind))];
  return [
    `## ${own.key}\n`,
    `${own.meaning}.${own.required ? " Required." : ""}\n`,
    ...(EXAMPLES[own.key] === undefined ? [] : [`\`\`\`yaml\n${EXAMPLES[own.key]}\`\`\`\n`]),
    ...kinds.flatMap((kind) => [
      ...(kind === "" ? [] : [`### ${own.key}: ${kind}\n`]),
      ...table(rows.filter((row) => row.kind === kind)),
    ]),
    ...(NOTES[own.key] === undefined ? [] : [`${NOTES[own.key]}\n`]),
  ];
}

function table(rows: readonly Row[]): string[] {
  return ["| key | meaning |", "|---|---|", ...rows.map(line), ""];
}

function line({ key, type, required, meaning }: Row): string {
  // Most keys take a text, and the keys of a mapping follow it.
  const shown = [required ? "*required*" : "", /^(?:text|mapping)$/.test(type) ? "" : type];
  const form = shown.filter((part) => part !== "").join(", ");
  const cell = `${form}${form === "" ? "" : ". "}${meaning}`;
  return `| ${code(key)} | ${cell.replaceAll("|", "\\|")} |`;
}

if (import.meta.main) process.stdout.write(configurationReference());
