import type { Status, StatusReload } from "../../../core/status.ts";
import { type Html, html } from "./html.ts";
import { badge, section, table } from "./table.ts";
import { moment, relative } from "./words.ts";

/** The sections about the configuration and its last reload. */

export function reloadSection({ reload, now, configuration }: Status): Html | undefined {
  const { needRestart } = configuration;
  if (reload === undefined) return undefined;
  return section(
    "reload",
    "Last reload",
    `${relative(reload.at, now)}, ${moment(reload.at)}`,
    reload.successful ? successful(reload) : failed(reload),
    needRestart.length === 0
      ? html``
      : html`<p>
          ${badge("warn", "restart needed")} Changed, and in force after a restart:
          <code>${needRestart.join(", ")}</code>
        </p>`,
  );
}

function successful({ changes, files }: StatusReload): Html {
  const rows = changes.map(({ key, before, after }) => [
    html`<code>${key}</code>`,
    html`<code class="bad-text">${written(before)}</code>`,
    html`<code>${written(after)}</code>`,
  ]);
  return html`<p>
      ${badge("good", "in force")}
      ${files.length === 0 ? "" : html`Changed files: <code>${files.join(", ")}</code>`}
    </p>
    ${rows.length === 0 ? html`<p class="soft">No value changed.</p>` : table(["Key", "Before", "After"], rows)}`;
}

function failed({ problems }: StatusReload): Html {
  return html`<p>${badge("bad", "not in force")} The configuration before stays in force.</p>
    ${problems.map((problem) => html`<pre>${problem}</pre>`)}`;
}

export function configurationSection({ configuration }: Status): Html {
  const { hash, values } = configuration;
  const set = values.filter(({ origin }) => origin !== "default");
  const defaults = values.length - set.length;
  return section(
    "configuration",
    "Configuration in force",
    hash,
    valuesTable(set),
    html`<details class="values">
      <summary>${defaults} values are defaults</summary>
      ${valuesTable(values.filter(({ origin }) => origin === "default"))}
    </details>`,
  );
}

function valuesTable(values: Status["configuration"]["values"]): Html {
  return table(
    ["Key", "Value", "Origin"],
    values.map(({ key, value, origin }) => [
      html`<code>${key}</code>`,
      html`<code>${written(value)}</code>`,
      html`<span class="soft">${origin}</span>`,
    ]),
  );
}

/** Returns a value as it would be written in a file; a dash without one. */
function written(value: unknown): string {
  if (value === undefined) return "–";
  if (Array.isArray(value)) return value.map(written).join(", ") || "[]";
  return typeof value === "string" ? value : JSON.stringify(value);
}
