import type { IncomingHttpHeaders } from "node:http";

/** What a page of the admin listener is asked. */
export interface AdminRequest {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
}

export interface AdminAnswer {
  readonly status: number;
  /** The media type. */
  readonly type: string;
  readonly body: string;
}

/** One page of the admin listener. */
export interface AdminPage {
  readonly path: string;
  /** POST for what changes something; a page for GET answers HEAD, too. */
  readonly method: "GET" | "POST";
  /**
   * Who gets it: everybody who reaches the port, or only the peers of `admin.allow`, and never a web page, since it changes
   * or reveals something.
   */
  readonly audience: "everybody" | "allowed";
  answer(request: AdminRequest): AdminAnswer | Promise<AdminAnswer>;
}

export const PLAIN_TEXT = "text/plain; charset=utf-8";
export const JSON_TYPE = "application/json";
