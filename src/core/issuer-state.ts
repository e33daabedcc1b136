/** Whether tokens of a trusted issuer can be verified now. */
export interface IssuerState {
  readonly issuer: string;
  /** Whether a usable key of the issuer is loaded. */
  readonly usable: boolean;
}
