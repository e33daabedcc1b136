import type { ExplainedRoute } from "../../../core/explanation.ts";
import type {
  RefusalExplanation,
  Status,
  StatusConfiguration,
  StatusRefusal,
  StatusReload,
} from "../../../core/status.ts";
import { type Html, html } from "../../../lib/text/html.ts";
import { htmlPage } from "../../browser/page.ts";
import {
  badge,
  type Cell,
  code,
  factsOf,
  health,
  requestLine,
  type Section,
  sectionsOf,
  type Series,
  soft,
  type Table,
  tableOf,
} from "./sections.ts";
import { STYLE_ELEMENT } from "./style.ts";
import { amount, clockTime, moment, relative } from "./words.ts";

/** How often the page is read again if a person wants that, in seconds: opened details close. */
const REFRESH = 10;

/** Renders the status as one self-contained page. @param refreshes whether the browser reads it again and again. */
export function renderStatus(status: Status, refreshes = false): string {
  const sections = Object.entries(pageSections(status));
  const body = html`<header>
      <div>
        <h1>Sallyport</h1>
        ${shown(health(status))}
        <p>${status.host} · version ${status.version}</p>
        <p class="when">
          as of ${clockTime(status.now)} UTC ·
          ${
            refreshes
              ? html`every ${REFRESH} s · <a href="/-/">stop</a>`
              : html`<a href="/-/">reload</a> · <a href="/-/?refresh">every ${REFRESH} s</a>`
          }
        </p>
        <nav aria-label="Sections">
          ${sections.map(([id, { title, link }]) => html`<a href="#${id}">${link ?? title}</a> `)}
        </nav>
      </div>
    </header>
    <main>
      <ul class="tiles">
        ${Object.values(factsOf(status)).map(
          ([name, value, more]) =>
            html`<li><span>${name}</span><b>${value}</b><span>${more}</span></li> `,
        )}
      </ul>
      ${sections.map(
        ([id, { title, note, content }]) =>
          html`<section id="${id}">
            <h2>${title}<small>${note}</small></h2>
            ${content}
          </section> `,
      )}
    </main>
    <footer>
      Everything on this page was true at ${moment(status.now)}. The same as JSON:
      <code>/-/status</code>; in a terminal: <code>sallyport top</code>.
    </footer>`;
  const again = refreshes ? html`<meta http-equiv="refresh" content="${REFRESH}" />` : undefined;
  return htmlPage(`${status.host}: Sallyport`, STYLE_ELEMENT, body, again);
}

function pageSections(status: Status): Record<string, Section<Html>> {
  const { reasons, logins, refusals, ...tables } = sectionsOf(status);
  const tabular = Object.entries(tables).filter(([, { content }]) => content.rows.length > 0);
  const cells = refusals.content.rows;
  const opened = status.refusals.map((refusal, row) => refusalDetails(refusal, cells[row]));
  return {
    reasons: plotted(reasons, "nothing was refused", status),
    logins: plotted(logins, "nobody logged in", status),
    ...Object.fromEntries(
      tabular.map(([id, each]) => [id, { ...each, content: table(each.content) }]),
    ),
    refusals: { ...refusals, content: html`<div>${opened}</div>` },
    ...(status.reload && { reload: lastReload(status.reload, status) }),
    configuration: configuration(status.configuration),
  };
}

const TAGS: Readonly<Record<string, string>> = { code: "code", strong: "b" };

/** Returns one element, and the remark beside it if there is one. */
function shown({ text, tone, look = "text", more, hover }: Cell): Html {
  const tag = TAGS[look] ?? "span";
  const title = hover !== undefined && html` title="${hover}"`;
  const beside = more !== undefined && html` <span class="soft">${more}</span>`;
  return html`<${tag} class="${look} ${tone}"${title}>${text}</${tag}>${beside}`;
}

/** Draws a table that turns into labelled blocks on narrow screens. */
function table({ columns, rows }: Table): Html {
  const each = (draw: (column: Table["columns"][number], index: number) => Html) =>
    columns.map((column, index) => column.title !== "" && draw(column, index));
  const line = (row: readonly Cell[]) =>
    each(
      ({ title, kind }, index) =>
        html`<td class="${kind}" data-label="${title}">
          <span>${row.slice(index, index + 1).map(shown)}</span>
        </td>`,
    );
  return html`<table>
    <thead>
      <tr>
        ${each(({ title, kind }) => html`<th scope="col" class="${kind}">${title}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            ${line(row)}
          </tr> `,
      )}
    </tbody>
  </table>`;
}

const BAR = 8;
const HEIGHT = 40;

/** @param nothing what happened, if there are no series. */
function plotted(
  section: Section<readonly Series[]>,
  nothing: string,
  { minutes }: Status,
): Section<Html> {
  const plots = section.content.map((series) => plot(series, minutes));
  const none = html`<p class="soft">In ${section.note}, ${nothing}.</p>`;
  return {
    ...section,
    content: plots.length === 0 ? none : html`<div class="plots">${plots}</div>`,
  };
}

/** Draws a bar for each minute, the last one on the right. The highest bar fills the height. */
function plot({ word, counts, total, tone }: Series, minutes: Status["minutes"]): Html {
  const highest = Math.max(...counts, 1);
  const width = counts.length * BAR;
  const last = minutes.length - 1;
  const bars = counts.map((count, index) => {
    if (count === 0) return undefined;
    const height = Math.max(2, (count / highest) * (HEIGHT - 2));
    const y = (HEIGHT - height).toFixed(1);
    const at = clockTime(minutes[index]?.at ?? 0).slice(0, 5);
    return html`<rect
      class="${tone}"
      x="${index * BAR + 1}"
      y="${y}"
      width="${BAR - 2}"
      height="${height.toFixed(1)}"
      rx="1"
      ><title>${at}: ${amount(count)}</title></rect
    >`;
  });
  return html`<figure>
    <figcaption>
      <span>${word}</span
      ><span
        ><b>${amount(total)}</b>
        <span class="soft">at most ${amount(Math.max(...counts, 0))} in a minute</span></span
      >
    </figcaption>
    <svg
      viewBox="0 0 ${width} ${HEIGHT + 1}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${word}: ${amount(total)} in ${counts.length} minutes"
    >
      <line class="base" x1="0" x2="${width}" y1="${HEIGHT}" y2="${HEIGHT}" />
      ${bars}
    </svg>
    <div class="axis" aria-hidden="true">
      ${[0, Math.round(last / 2), last].map(
        (index) => html`<span>${clockTime(minutes[index]?.at ?? 0).slice(0, 5)}</span>`,
      )}
    </div>
  </figure>`;
}

/** The sections that only the page has: the last reload, and the configuration. */
function lastReload(reload: StatusReload, { now, configuration }: Status): Section<Html> {
  const { needRestart } = configuration;
  const restart = html`<p>
    ${shown(badge("warn", "restart needed"))} Changed, and in force after a restart:
    <code>${needRestart.join(", ")}</code>
  </p>`;
  return {
    title: "Last reload",
    note: `${relative(reload.at, now)}, ${moment(reload.at)}`,
    content: html`${reload.successful ? changesOf(reload) : problemsOf(reload)}
    ${needRestart.length > 0 && restart}`,
  };
}

/** The changes that are shown at once. */
const MOST_CHANGES = 10;

function changesOf({ changes, files }: StatusReload): Html {
  const tableOfChanges = (some: StatusReload["changes"]) =>
    table(
      tableOf(some, {
        Key: ({ key }) => code(key),
        Before: ({ before }) =>
          code(written(before), { tone: before === undefined ? "soft" : "bad" }),
        After: ({ after }) =>
          code(written(after), { tone: after === undefined ? "soft" : "plain" }),
      }),
    );
  const folded = changes.slice(MOST_CHANGES);
  return html`<p>
      ${shown(badge("good", "in force"))}
      ${files.length > 0 && html`Changed files: <code>${files.join(", ")}</code>`}
    </p>
    ${changes.length === 0 && html`<p class="soft">No value changed.</p>`}
    ${changes.length > 0 && tableOfChanges(changes.slice(0, MOST_CHANGES))}
    ${
      folded.length > 0 &&
      html`<details class="values">
        <summary>${folded.length} more</summary>
        ${tableOfChanges(folded)}
      </details>`
    }`;
}

function problemsOf({ problems }: StatusReload): Html {
  return html`<p>${shown(badge("bad", "not in force"))} The configuration before stays in force.</p>
    ${problems.map((problem) => html`<pre>${problem}</pre>`)}`;
}

function configuration({ hash, values }: StatusConfiguration): Section<Html> {
  const set = values.filter(({ origin }) => origin !== "default");
  const defaults = values.filter(({ origin }) => origin === "default");
  const content = html`${valuesTable(set)}
    <details class="values">
      <summary>${defaults.length} more with their defaults</summary>
      ${valuesTable(defaults)}
    </details>`;
  return { title: "Configuration in force", link: "Configuration", note: hash, content };
}

function valuesTable(values: StatusConfiguration["values"]): Html {
  const columns = tableOf(values, {
    Key: ({ key }) => code(key),
    Value: ({ value }) => code(written(value)),
    Origin: ({ origin }) => soft(origin),
  });
  return table(columns);
}

/** Returns a value as it would be written in a file; a dash without one. */
function written(value: unknown): string {
  if (value === undefined) return "–";
  if (Array.isArray(value)) return value.map(written).join(", ") || "[]";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A refusal, which opens its explanation. */
function refusalDetails(refusal: StatusRefusal, cells: readonly Cell[] = []): Html {
  const { at, route, subject, requestId, id, explanation } = refusal;
  const rows = {
    Time: moment(at),
    Request: shown(code(requestLine(refusal))),
    Ids: shown(code(requestId, { more: `and ${id} in the answer` })),
    Route: route,
    Subject: subject,
    ...explained(explanation),
  };
  const nothing = html`<p class="soft">
    The request could not be read, so there is nothing to explain.
  </p>`;
  return html`<details class="refusal">
    <summary>${cells.map(shown)}</summary>
    <div>
      <dl>
        ${Object.entries(rows).map(
          ([term, words]) =>
            words !== undefined &&
            html`<dt>${term}</dt>
              <dd>${words}</dd> `,
        )}
      </dl>
      ${explanation === undefined ? nothing : html`<pre>${explanation.command}</pre>`}
    </div>
  </details> `;
}

function explained(explanation: RefusalExplanation | undefined) {
  if (explanation === undefined) return {};
  const { verdict, routes, access, notes } = explanation;
  const { outcome, status, reason, detail, route } = verdict;
  const why = detail === undefined ? "" : ` (${detail})`;
  const now = outcome === "refused" ? `refused with ${status}: ${reason}${why}` : outcome;
  return {
    "Without a token, now": html`${now}; route <b>${route}</b>`,
    "Who may pass": access,
    "Routes tried": routes.length === 0 ? "none" : html`${routes.map(routeLine)}`,
    Notes: notes.length === 0 ? undefined : notes.join("; "),
  };
}

function routeLine({ name, hosts, path, methods, result, misfits }: ExplainedRoute): Html {
  const why = misfits.length === 0 ? result : `another ${misfits.join(", another ")}`;
  const where = [hosts?.join(","), path, methods?.join(",")].filter((part) => part !== undefined);
  return html`<div>
    ${result === "taken" ? html`<b>${name}</b>` : name} <code>${where.join(" ")}</code>
    <span class="soft">${why}</span>
  </div>`;
}
