import type { ExplainedRoute } from "../../../core/explanation.ts";
import type { RefusalExplanation, Status, StatusRefusal } from "../../../core/status.ts";
import { type Html, html } from "./html.ts";
import { section } from "./table.ts";
import { clockTime, moment, requestLine } from "./words.ts";

/** The last refusals, each of which opens its explanation. */
export function refusalsSection({ refusals }: Status): Html {
  return section(
    "refusals",
    "Last refusals",
    refusals.length === 0
      ? "none yet"
      : `${refusals.length}, the newest first; open one to see why`,
    html`<div>${refusals.map(refusalDetails)}</div>`,
  );
}

type Row = readonly [term: string, description: Html | string];

function refusalDetails(refusal: StatusRefusal): Html {
  const { at, status, reason, client, route, subject, requestId, id, explanation } = refusal;
  const target = requestLine(refusal);
  const tone = status >= 500 ? "bad-text" : "warn-text";
  const rows: readonly Row[] = [
    ["Time", moment(at)],
    ["Request", html`<code>${target}</code>`],
    ["Ids", html`<code>${requestId}</code> <span class="soft">and ${id} in the answer</span>`],
    ["Route", route],
    ...(subject === undefined ? [] : [["Subject", subject] as const]),
    ...(explanation === undefined ? [] : explained(explanation)),
  ];
  return html`<details class="refusal">
    <summary>
      <span class="mono">${clockTime(at)}</span><b class="${tone}">${status}</b
      ><span>${reason}</span><code>${target}</code><span class="soft mono">${client}</span>
    </summary>
    <div>
      <dl>
        ${rows.map(
          ([term, description]) =>
            html`<dt>${term}</dt>
              <dd>${description}</dd> `,
        )}
      </dl>
      ${explanation === undefined ? unreadable() : html`<pre>${explanation.command}</pre>`}
    </div>
  </details> `;
}

function unreadable(): Html {
  return html`<p class="soft">The request could not be read, so there is nothing to explain.</p>`;
}

function explained({ verdict, routes, access, notes }: RefusalExplanation): Row[] {
  const { outcome, status, reason, detail } = verdict;
  const why = detail === undefined ? "" : ` (${detail})`;
  const now = outcome === "refused" ? `refused with ${status}: ${reason}${why}` : outcome;
  return [
    ["Without a token, now", html`${now}; route <b>${verdict.route}</b>`],
    ...(access === undefined ? [] : [["Who may pass", access] as const]),
    ["Routes tried", routes.length === 0 ? "none" : html`${routes.map(routeLine)}`],
    ...(notes.length === 0 ? [] : [["Notes", notes.join("; ")] as const]),
  ];
}

function routeLine({ name, hosts, path, methods, result, misfits }: ExplainedRoute): Html {
  const why = misfits.length === 0 ? result : `another ${misfits.join(", another ")}`;
  const where = [hosts?.join(","), path, methods?.join(",")].filter((part) => part !== undefined);
  return html`<div>
    ${result === "taken" ? html`<b>${name}</b>` : name} <code>${where.join(" ")}</code>
    <span class="soft">${why}</span>
  </div>`;
}
