package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

const tagActions = "Actions"

// exampleProposal is a valid proposal.
const exampleProposal = `{"action_type":"price_change","connector":"shop","operation":"update",` +
	`"target":{"entity_type":"item","entity_ref":"SKU-1042"},"proposed_change":{"price":"12.50"}}`

func (s *Server) actionRoutes() []route {
	return []route{
		{
			method: "POST", path: "/proposed-actions", name: "propose", tag: tagActions,
			summary: "Propose a change",
			doc: "The policy judges the change at once. A denial is an answer, not an error: 201 with status denied. " +
				"If fewer people may answer than must approve, the action is denied too; the first of policy.reasons gives both " +
				"numbers. A known idempotency_key with the same content answers 200 with the action that it named.",
			roles: proposers, cached: true, status: http.StatusCreated, replays: true,
			out: typeOf[gatehouse.Action](), idempotent: true,
			codes:   []gatehouse.Code{gatehouse.CodeDuplicateKey, gatehouse.CodeUnsupported},
			example: exampleProposal,
			handler: body((*gatehouse.Proposal).Validate,
				func(ctx context.Context, _ *call, in *gatehouse.Proposal) (reply, error) {
					a, replayed, err := s.cfg.Actions.Propose(ctx, in)
					if replayed {
						return reply{status: http.StatusOK, value: a}, err
					}
					return reply{value: a}, err
				}),
		}, {
			method: "GET", path: "/proposed-actions", name: "listActions", tag: tagActions,
			summary: "List actions",
			doc: "Lists the newest first; sort=urgency lists pending ones by due bucket, then risk, then age. All pages " +
				"together list every action exactly once, even if actions change meanwhile. Archived actions (archived_at) " +
				"are listed with archived=true only.",
			roles: readers, cached: true, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Action]](),
			query: paging(
				param{name: "status", kind: paramEnum, enum: words(gatehouse.Statuses()), doc: "Only actions in this state."},
				param{name: "action_type", max: 128, doc: "Only actions of this type."},
				param{name: "risk_level", kind: paramInteger, min: 1, max: 5, doc: "Only actions of this level."},
				param{name: "proposed_by", max: 128, doc: "Only actions of this principal, by id or name."},
				param{name: "q", max: 256, doc: "Beginnings of words of the type, the target, the title, the proposer, " +
					"on_behalf_of, the rationale, the amount, the key or the proposed values, separated by spaces; or the id of an " +
					"action, approval or push."},
				param{name: "sort", kind: paramEnum, enum: words([]gatehouse.Sort{gatehouse.SortNewest, gatehouse.SortUrgency}),
					doc: "The order; newest by default."},
				param{name: "decided", kind: paramEnum, enum: words(gatehouse.DecidedHows()), doc: "approved: only actions " +
					"that people approved; people: that people approved or rejected; allowed: that the policy allowed without " +
					"people. Actions that were canceled or superseded since are not listed. Not in the archive."},
				param{name: "group", max: 64, doc: "Only actions that ask the group with this name. Not in the archive."},
				param{name: "assignee", max: 128, doc: "Only actions assigned to this person, by id or name; me is the caller. " +
					"Not in the archive."},
				param{name: "archived", kind: paramEnum, enum: []string{"true", "false"}, doc: "true lists the archive instead, " +
					"newest first; there, q can only be an id."},
			),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				if c.query["archived"] == "true" {
					if err := c.query.notInArchive("decided", "group", "assignee"); err != nil {
						return reply{}, err
					}
				}
				assignee, err := assigneeOf(ctx, c)
				if err != nil {
					return reply{}, err
				}
				page, err := s.cfg.Actions.ListActions(ctx, gatehouse.ActionFilter{
					Status: gatehouse.Status(c.query["status"]), ActionType: c.query["action_type"],
					RiskLevel:  gatehouse.RiskLevel(c.query.integer("risk_level", 0)),
					ProposedBy: c.query["proposed_by"], Query: c.query["q"], Sort: gatehouse.Sort(c.query["sort"]),
					Archived: c.query["archived"] == "true", Decided: gatehouse.DecidedHow(c.query["decided"]),
					AskedGroup: c.query["group"], Assignee: assignee,
					Limit: c.query.limit(), Cursor: c.query["cursor"],
				})
				if err == nil && len(page.Items) == 0 && c.query["cursor"] == "" {
					err = s.checkNames(ctx, c)
				}
				return answer(page, err)
			}),
		}, {
			method: "GET", path: "/proposed-actions/{id}", name: "getAction", tag: tagActions,
			summary: "Read an action, or wait for a change of it",
			doc: "With wait, the server answers when the action is decided or finished, or after the given time: 200 with " +
				"its present state.",
			roles: readers, object: ObjectAction, status: http.StatusOK, out: typeOf[gatehouse.Action](),
			query: []param{
				{name: "wait", kind: paramWait, doc: "How long to wait, such as 30s; at most 60s."},
				{name: "until", kind: paramEnum, enum: words([]gatehouse.Until{gatehouse.UntilDecided, gatehouse.UntilFinished}),
					doc: "What to wait for; decided by default."},
				{name: "questions_after", kind: paramInteger, min: 0, max: gatehouse.MaxComments,
					doc: "With wait: also answer when the action has an open question with a higher number. " +
						"Pass the highest number that you have seen."},
			},
			handler: noBody(s.getAction),
		}, {
			method: "POST", path: "/proposed-actions/{id}/cancel", name: "cancel", tag: tagActions,
			summary: "Cancel an action",
			doc: "The proposer may cancel it while it is pending without a held rejection; an approver, with the edit token, " +
				"during the hold of the approval. A repeated request gets already_canceled.",
			roles: []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover}, token: tokenOptional, object: ObjectAction,
			status: http.StatusOK, out: typeOf[gatehouse.CancelAnswer](), idempotent: true,
			codes: []gatehouse.Code{gatehouse.CodeAlreadyDecided, gatehouse.CodeTooLate, gatehouse.CodeEditTokenRequired},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Actions.Cancel(ctx, c.id))
			}),
		}, {
			method: "POST", path: "/proposed-actions/{id}/undo", name: "undo", tag: tagDecisions,
			summary: "Take back a decision within its hold",
			doc: "Undoes an approval within its hold, or a rejection that was given with hold. The old action becomes " +
				"superseded, and a new revision of the same content, with the caller in undone_by, is judged and decided again; " +
				"votes do not carry over. The active policy judges it again, and may deny it. Everybody in the audience of the " +
				"approval, and everybody who voted, may undo; what the policy approved alone, every approver. A repeated request " +
				"gets already_undone.",
			roles: approvers, token: tokenRequired, object: ObjectAction,
			status: http.StatusOK, out: typeOf[gatehouse.UndoAnswer](), idempotent: true,
			codes: []gatehouse.Code{gatehouse.CodeTooLate, gatehouse.CodeSelfApproval},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Actions.Undo(ctx, c.id))
			}),
		}, {
			method: "POST", path: "/proposed-actions/{id}/revise", name: "revise", tag: tagActions,
			summary: "Replace a pending action by a new revision",
			doc: "Takes a whole proposal. The new action names the old one in supersedes; the old one becomes superseded, " +
				"and its votes do not carry over.",
			roles: proposers, object: ObjectAction,
			status: http.StatusCreated, out: typeOf[gatehouse.Action](), idempotent: true,
			codes: []gatehouse.Code{gatehouse.CodeAlreadyDecided, gatehouse.CodeExpired, gatehouse.CodeDuplicateKey,
				gatehouse.CodeUnsupported},
			example: exampleProposal,
			handler: body((*gatehouse.Proposal).Validate,
				func(ctx context.Context, c *call, in *gatehouse.Proposal) (reply, error) {
					return answer(s.cfg.Actions.Revise(ctx, c.id, in))
				}),
		}, {
			method: "POST", path: "/proposed-actions/{id}/rebase", name: "rebase", tag: tagActions,
			summary: "Propose the same change on the present state of its target",
			doc: "For a pending action with can_rebase whose target has changed since it was proposed. The gate reads " +
				"version and state of the target; the change stays as it is, and so does the proposer. The new action names the " +
				"old one in " +
				"supersedes and the caller in rebased_by; the old one becomes superseded, and its votes do not carry over. The " +
				"caller does not " +
				"contribute to the content, and may decide it. The reason of cannot_rebase is one of unchanged, target_gone, " +
				"unreadable, " +
				"state_too_large, state_invalid or proposer_disabled. busy: the target did not answer. Nothing is stored then.",
			roles: []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover}, object: ObjectAction,
			status: http.StatusCreated, out: typeOf[gatehouse.Action](), idempotent: true,
			codes: []gatehouse.Code{gatehouse.CodeAlreadyDecided, gatehouse.CodeExpired, gatehouse.CodeCannotRebase},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Actions.Rebase(ctx, c.id))
			}),
		}, {
			method: "POST", path: "/proposed-actions/{id}/edit", name: "edit", tag: tagActions,
			summary: "Edit the change of a pending action, or correct a failed one",
			doc: "Whoever has an own right to decide a pending action may edit it, and so may an earlier editor; a delegate " +
				"may not. An operator corrects a failed action whose change the target refused: its dead letter is closed, and " +
				"the action stays failed. Takes the whole new change, or a JSON merge patch (RFC 7396) of the old one, with the " +
				"digest of what was seen and a note for the proposer. It makes a new revision: the proposer stays, edited_by " +
				"names the caller, edit.changes has each differing field, with the proposer's and the editor's value, and the " +
				"policy judges the edited change. The old action becomes superseded, and its votes do not carry over. The editor " +
				"may approve the revision alone up to the policy's edits.approve_up_to (3 by default), and above it as one of " +
				"several; with 0, never. With approve, the caller's approval is stored with the edit, or neither is. With " +
				"dry_run nothing is stored, and the answer is the revision as it would be: 200, without id and digest. The " +
				"reason of cannot_edit is one of unchanged, denied, not_editable or proposer_disabled; for a correction also " +
				"others_approve or dead_letter_closed. Nothing is stored then.",
			roles: editors, token: tokenRequired, object: ObjectAction,
			status: http.StatusCreated, replays: true, out: typeOf[gatehouse.Action](), idempotent: true,
			codes: append([]gatehouse.Code{
				gatehouse.CodeAlreadyDecided, gatehouse.CodeCannotEdit,
			}, refusals...),
			example: `{"digest":"sha256:…","note":"why","patch":{"price":"11.00"}}`,
			handler: body((*gatehouse.EditRequest).Validate,
				func(ctx context.Context, c *call, in *gatehouse.EditRequest) (reply, error) {
					a, err := s.cfg.Actions.Edit(ctx, c.id, *in)
					if in.Approve && !in.DryRun {
						s.metrics.decided("decide", a, err)
					}
					if in.DryRun {
						return reply{status: http.StatusOK, value: a}, err
					}
					return answer(a, err)
				}),
		}, {
			method: "POST", path: "/proposed-actions/{id}/reverse", name: "reverse", tag: tagActions,
			summary: "Propose the opposite of an applied change",
			doc: "Proposes the change that undoes the applied one, as its receipt describes it. It goes through the gate " +
				"like any other. Reversing a change of the connectors in the store needs an administrator, with the edit " +
				"token.",
			roles: []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator},
			token: tokenOptional, object: ObjectAction,
			status: http.StatusCreated, out: typeOf[gatehouse.Action](), idempotent: true,
			codes: []gatehouse.Code{gatehouse.CodeNotReversible, gatehouse.CodeEditTokenRequired},
			handler: maybe(body((*gatehouse.ReverseRequest).Validate, func(
				ctx context.Context, c *call, in *gatehouse.ReverseRequest,
			) (reply, error) {
				return answer(s.cfg.Actions.Reverse(ctx, c.id, *in))
			})),
		}, {
			method: "GET", path: "/proposed-actions/{id}/evidence", name: "getEvidence", tag: tagActions,
			summary: "Read everything about an action",
			doc: "Returns the action, its receipts, its entries in the audit log, and the canonical text whose SHA-256 is " +
				"the digest.",
			roles: readers, object: ObjectAction, status: http.StatusOK, out: typeOf[gatehouse.Evidence](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Actions.Evidence(ctx, c.id))
			}),
		}, {
			method: "GET", path: "/applied", name: "listApplied", tag: tagActions,
			summary: "List applied changes",
			doc:     "Lists the record (before, after, receipt) of each applied action, the newest first.",
			roles:   readers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.AppliedMirror]](), query: paging(),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Actions.ListMirror(ctx, c.query["cursor"], c.query.limit()))
			}),
		}, {
			method: "GET", path: "/corpus", name: "listCorpus", tag: tagActions,
			summary: "List decisions with their features and reasons",
			doc:     "Lists features, outcome, author and reason of each decision, the newest first.",
			roles:   readers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.CorpusEntry]](), query: paging(),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Actions.ListCorpus(ctx, c.query["cursor"], c.query.limit()))
			}),
		},
	}
}

// getAction reads an action. With the parameter wait, it waits for a change.
func (s *Server) getAction(ctx context.Context, c *call) (reply, error) {
	wait := c.query.wait()
	if wait == 0 {
		return answer(s.cfg.Actions.FindAction(ctx, c.id))
	}
	if err := c.wait(wait); err != nil {
		return reply{}, err
	}
	until := gatehouse.Until(c.query["until"])
	if until == "" {
		until = gatehouse.UntilDecided
	}
	if c.query["questions_after"] != "" {
		seen := int(c.query.integer("questions_after", 0))
		return answer(s.cfg.Actions.WaitAsked(ctx, c.id, wait, until, seen))
	}
	return answer(s.cfg.Actions.WaitAction(ctx, c.id, wait, until))
}
