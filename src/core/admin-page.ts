import type { IncomingHttpHeaders } from "node:http";

/** A request for a page of the admin listener. */
interface AdminRequest {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The address of the peer. */
  readonly peer: string;
  /** Whether the peer is in `admin.allow`. */
  readonly allowed: boolean;
}

/** A response of a media type other than JSON. */
interface AdminTextResponse {
  readonly status: number;
  /** The media type. */
  readonly type: string;
  /** A buffer if many clients may get the same response: all of them then share the memory until they have read it. */
  readonly body: string | Buffer;
  /** Further header fields. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A JSON response. The listener adds the `id`. */
interface AdminJsonResponse {
  readonly status: number;
  readonly json: {
    readonly message: string;
    readonly success: boolean;
    readonly [field: string]: unknown;
  };
}

export type AdminResponse = (AdminTextResponse | AdminJsonResponse) & {
  /** The allowed methods, for the `Allow` field. */
  readonly allow?: string;
};

/** One page of the admin listener. */
export interface AdminPage {
  readonly path: string;
  /** POST for a page that changes something. A page for GET also answers HEAD. */
  readonly method: "GET" | "POST";
  /**
   * Who may request the page: everybody who reaches the port, or only peers in `admin.allow`, because the page changes
   * or reveals something. Scripts of web pages may not request the latter.
   */
  readonly audience: "everybody" | "allowed";
  /**
   * Creates the response. A slow page for everybody returns the same promise to concurrent requests, so that clients
   * that disconnect early cost nothing.
   */
  answer(request: AdminRequest): AdminResponse | Promise<AdminResponse>;
}

export const PLAIN_TEXT = "text/plain; charset=utf-8";
