import type { AdminPage, AdminResponse } from "../../core/admin-page.ts";

/** Creates a page that only peers in `admin.allow` may request. */
export function restrictedPage(
  method: AdminPage["method"],
  path: string,
  answer: AdminPage["answer"],
): AdminPage {
  return { path, method, audience: "allowed", answer };
}

export function success(message: string, fields: object, status = 200): AdminResponse {
  return { status, json: { message, success: true, ...fields } };
}

export function failure(status: number, message: string, fields: object = {}): AdminResponse {
  return { status, json: { message, success: false, ...fields } };
}
