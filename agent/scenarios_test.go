package agent

import "testing"

func TestRequestsAcrossRuns(t *testing.T) {
	playScenarios(t, map[string]string{
		"an approval in a later run": `
			model "Let me." 1=pay({"to":"bob"}) 2=look() | "Done."
			tools pay! look
			> "pay bob"
			told assistant: "Let me." ficc_1?[1=pay({"to":"bob"})]
			kept user: "pay bob" / assistant: "Let me."
			ran look
			> +ficc_1
			told assistant: 1=pay({"to":"bob"}) 2=look() / tool: 1→"did pay" 2→"did look" / assistant: "Done."
			kept user: "pay bob" / assistant: "Let me." / assistant: 1=pay({"to":"bob"}) 2=look()
			/ tool: 1→"did pay" 2→"did look" / assistant: "Done."
			ran look pay{"to":"bob"}
			open`,
		"new messages keep requests open": `
			model "a?" 1=pay({"n":1}) | "b?" 2=pay({"n":2}) | "sure" | "both"
			tools pay!
			> "one"
			> "two"
			asks ficc_2 ficc_1
			open ficc_1 ficc_2
			sent user: "one" / assistant: "a?" / user: "two"
			> "three"
			asks ficc_1 ficc_2
			> +ficc_2
			ran pay{"n":2}
			asks ficc_1
			turns 3
			> -ficc_1
			sent user: "one" / assistant: "a?" / user: "two" / assistant: "b?" / user: "three" / assistant: "sure"
			/ assistant: 2=pay({"n":2}) / tool: 2→"did pay" / assistant: 1=pay({"n":1})
			/ tool: 1→"Tool call invocation rejected."`,
		"a new message supersedes": `
			model 1=pay() 2=theirs() 3=look() 4=send() | "fine" | "late"
			tools pay! theirs? look send!
			with supersede
			> "go"
			asks ficc_1 ficc_4
			events requested 1 ficc_1; requested 4 ficc_4; finished 3
			> +ficc_4 "something else"
			told assistant: 1=pay() 2=theirs() 3=look() 4=send()
			/ tool: 1→"GONE" 2→"GONE" 3→"did look" 4→"did send" / assistant: "fine"
			joined user: "go" / assistant: 1=pay() 2=theirs() 3=look() 4=send()
			/ tool: 1→"GONE" 2→"GONE" 3→"did look" 4→"did send" / user: "something else"
			open
			ran look send
			events answered 4 ficc_4 true; superseded 1 ficc_1; superseded 2; started 4; finished 4
			> +ficc_1 "sorry"
			refused ficc_1 closed_request`,
		"the order of .NET": `
			model 1=pay({"n":1}) 2=pay({"n":2}) 3=pay({"n":3}) | "ok"
			tools pay!
			with dotnet
			> "pay"
			> +ficc_1 -ficc_2 +ficc_3
			sent user: "pay" / assistant: 2=pay({"n":2}) 1=pay({"n":1}) 3=pay({"n":3})
			/ tool: 2→"Tool call invocation rejected." / tool: 1→"did pay" 3→"did pay"`,
		"the order of the model": `
			model 1=pay({"n":1}) 2=pay({"n":2}) 3=pay({"n":3}) | "ok"
			tools pay!
			> "pay"
			> +ficc_1 -ficc_2 +ficc_3
			sent user: "pay" / assistant: 1=pay({"n":1}) 2=pay({"n":2}) 3=pay({"n":3})
			/ tool: 1→"did pay" 2→"Tool call invocation rejected." 3→"did pay"`,
		"siblings wait as requests": `
			model 1=pay() 2=look() 3=nothing() | "ok"
			tools pay! look
			with wrap
			> "x"
			asks ficc_1 ficc_2
			harmless ficc_2
			ran
			> -ficc_1
			> +ficc_2
			ran look
			joined user: "x" / assistant: 1=pay() 2=look() 3=nothing()
			/ tool: 1→"Tool call invocation rejected." 2→"did look" 3→"Error: Requested function \"nothing\" not found."`,
		"siblings do not wait for nothing": `
			model 1=look() 2=nothing() | "ok"
			tools pay! look
			with wrap
			> "x"
			told assistant: 1=look() 2=nothing()
			/ tool: 1→"did look" 2→"Error: Requested function \"nothing\" not found." / assistant: "ok"`,
		"an error of the model loses nothing": `
			model fails | 1=pay() 2=look() | fails | fails | "ok"
			tools pay! look
			> "x"
			error the model is away
			kept
			open
			> "x"
			> +ficc_1
			error the model is away
			> +ficc_1
			error the model is away
			>
			told assistant: 1=pay() 2=look() / tool: 1→"did pay" 2→"did look" / assistant: "ok"
			kept user: "x" / assistant: 1=pay() 2=look() / tool: 1→"did pay" 2→"did look" / assistant: "ok"
			ran look pay`,
		"an error of the model between harmless turns": `
			model 1=look() | fails | "ok"
			tools look
			> "x"
			error the model is away
			kept
			> "x"
			kept user: "x" / assistant: "ok"`,
		"a reused call id hides no history": `
			model 1=look() | "seen" | 1=pay() | "yes?"
			tools look pay!
			> "look"
			> "pay"
			> "still there?"
			sent user: "look" / assistant: 1=look() / tool: 1→"did look" / assistant: "seen" / user: "pay"
			/ user: "still there?"`,
		"a reused call id needs a new answer": `
			model 1=pay({"n":1}) | 1=pay({"n":1}) | "ok"
			tools pay!
			> "pay"
			> +ficc_1
			asks ficc_1.2
			> +ficc_1
			refused ficc_1 closed_request
			ran pay{"n":1}
			> +ficc_1.2
			ran pay{"n":1} pay{"n":1}`,
		"equal calls get answers of their own": `
			model 1=pay() 2=pay() | "ok"
			tools pay!
			> "pay"
			> -ficc_1 +ficc_2
			ran pay`,
		"a rejected call is asked about again once the user writes": `
			model 1=pay() | "ok" | 2=pay() | "ok"
			tools pay!
			> "pay"
			> -ficc_1
			> "do pay"
			asks ficc_2`,
		"a call id twice in a turn": `
			model 1=pay({"n":1}) 1=pay({"n":2}) | "ok"
			tools pay!
			> "go"
			asks ficc_1 ficc_1.2`,
		"an empty run asks nobody again": `
			model 1=pay() | "asked again"
			tools pay!
			> "pay"
			>
			turns 1
			asks ficc_1
			open ficc_1`,
		"an empty run supersedes nothing": `
			model 1=pay() | "asked again"
			tools pay!
			with supersede
			> "pay"
			>
			turns 1
			asks ficc_1
			open ficc_1`,
		"two messages of one turn": `
			model 1=look() / "one moment" | "ok"
			tools look
			> "go"
			sent user: "go" / assistant: 1=look() / tool: 1→"did look" / assistant: "one moment"`,
		"a late answer does not ask the model": `
			model 1=pay() | "ok" | "what?"
			tools pay!
			> "pay"
			> +ficc_1
			> +ficc_1
			refused ficc_1 closed_request
			turns 2`,
		"a late answer to a rejected request": `
			model 1=pay() | "ok" | "hm" | "hm"
			tools pay!
			> "pay"
			> -ficc_1:"no"
			> +ficc_1 "now"
			refused ficc_1 closed_request
			ran
			sent user: "pay" / assistant: 1=pay() / tool: 1→"Tool call invocation rejected. no" / assistant: "ok"
			/ user: "now"`,
		"reasoning waits with its call": `
			model thought 1=pay() | "meanwhile" | "ok"
			tools pay!
			> "x"
			> "wait"
			sent user: "x" / user: "wait"
			> +ficc_1
			told assistant: 1=pay() / tool: 1→"did pay" / assistant: "ok"
			sent user: "x" / user: "wait" / assistant: "meanwhile" / assistant: *content.Reasoning 1=pay()
			/ tool: 1→"did pay"`,
		"empty messages are left out": `
			model "ok"
			> "x" | ()
			sent user: "x"`,
		"some of the answers": `
			model 1=pay({"n":1}) 2=pay({"n":2}) 3=look() | "ok"
			tools pay! look
			> "pay"
			> +ficc_2
			told assistant: ficc_1?[1=pay({"n":1})]
			ran look pay{"n":2}
			turns 1
			> -ficc_1:"too much"
			told assistant: 1=pay({"n":1}) 2=pay({"n":2}) 3=look()
			/ tool: 1→"Tool call invocation rejected. too much" 2→"did pay" 3→"did look" / assistant: "ok"
			ran look pay{"n":2}`,
		"an edit that needs another answer, approved": `
			model 1=pay({"n":5}) | "ok"
			tools pay!
			decide ask small
			> "x"
			decide ask small big
			> ~ficc_1:{"n":9}
			asks ficc_1.2
			events requested 1 ficc_1; answered 1 ficc_1 true; requested 1 ficc_1.2
			> +ficc_1
			refused ficc_1 closed_request
			> +ficc_1.2
			ran pay{"n":9}`,
		"an edit that needs another answer, rejected": `
			model 1=pay({"n":5}) | "ok"
			tools pay!
			decide ask small
			> "x"
			decide ask small big
			> ~ficc_1:{"n":9}
			> -ficc_1.2
			ran`,
		"an edit sent twice": `
			model 1=pay({"n":5}) | "ok"
			tools pay!
			> "x"
			> ~ficc_1:{"n":4} ~ficc_1:{"n":4}
			refused ficc_1 repeated_answer
			ran pay{"n":4}`,
		"just before a request expires": `
			model 1=pay() | "ok"
			tools pay
			decide ask r within=1m
			> "x"
			later 59.999999999s
			> +ficc_1
			ran pay`,
		"a request that has expired": `
			model 1=pay() | "ok"
			tools pay
			decide ask r within=1m
			> "x"
			expires 1m0s
			events requested 1 ficc_1
			later 1m
			> +ficc_1
			refused ficc_1 closed_request
			why expired
			ran
			sent user: "x" / assistant: 1=pay() / tool: 1→"EXPIRED"
			events expired 1 ficc_1; refused  ficc_1`,
	})
}

func TestStopsAndLimits(t *testing.T) {
	playScenarios(t, map[string]string{
		"a harmless call stops": `
			model 1=look() 2=halt() 3=look() | "ok"
			tools look halt
			> "x"
			turns 1
			told assistant: 1=look() 2=halt() 3=look() / tool: 1→"did look" 2→"halted" 3→"STOPPED"
			> "y"
			sent user: "x" / assistant: 1=look() 2=halt() 3=look() / tool: 1→"did look" 2→"halted" 3→"STOPPED"
			/ user: "y"
			ran look`,
		"an approved call stops": `
			model 1=look() 2=halt() 3=look() | "ok"
			tools look! halt!
			> "x"
			events requested 1 ficc_1; requested 2 ficc_2; requested 3 ficc_3
			> +ficc_1 +ficc_2 +ficc_3
			events answered 1 ficc_1 true; answered 2 ficc_2 true; answered 3 ficc_3 true; started 1; finished 1; started 2; finished 2; skipped 3
			turns 1
			told assistant: 1=look() 2=halt() 3=look() / tool: 1→"did look" 2→"halted" 3→"STOPPED"
			> "y"
			sent user: "x" / assistant: 1=look() 2=halt() 3=look() / tool: 1→"did look" 2→"halted" 3→"STOPPED"
			/ user: "y"
			ran look`,
		"a stop beside a request": `
			model 1=halt() 2=pay() 3=look() | "ok"
			tools halt pay! look
			> "x"
			> +ficc_2
			ran pay
			turns 2`,
		"a stop ends with its run": `
			model 1=halt() 2=pay() | "ok"
			tools halt! pay!
			> "go"
			> +ficc_1
			> +ficc_2
			ran pay`,
		"the last turn": `
			model 0=look() | 1=look() 2=theirs() 3=pay() | "ok"
			tools look theirs? pay!
			with limit
			> "x"
			asks
			ran look
			turns 2
			offered theirs
			told assistant: 0=look() / tool: 0→"did look" / assistant: 1=look() 2=theirs() 3=pay()
			/ tool: 1→"LIMIT" 2→"LIMIT" 3→"LIMIT"
			> "y"`,
		"a stop, and the service keeps the history": `
			model 1=halt() | "ok"
			tools halt
			with keeps
			> "stop"
			> "more"
			sent tool: 1→"halted" / user: "more"`,
		"an approved stop, and the service keeps the history": `
			model 1=halt() | "ok"
			tools halt!
			with keeps
			> "stop"
			> "held"
			> +ficc_1
			> "more"
			sent tool: 1→"halted" / user: "held" / user: "more"`,
		"the last turn, and the service keeps the history": `
			model 1=look() | 2=look() | "ok"
			tools look
			with limit keeps
			> "go"
			> "more"
			sent tool: 2→"LIMIT" / user: "more"`,
	})
}

func TestServiceKeepsTheHistory(t *testing.T) {
	playScenarios(t, map[string]string{
		"only what is new is sent": `
			model 0=look() | "?" 1=pay() 2=look() | "ok" | "and"
			tools pay! look
			with keeps
			> "x"
			sent tool: 0→"did look"
			conversation conv conv conv
			kept
			> "before" +ficc_1 "after"
			sent tool: 1→"did pay" 2→"did look" / user: "before" "after"
			conversation conv conv conv
			> "y"
			sent user: "y"`,
		"messages wait for the results": `
			model 1=pay() | "ok" | "ok"
			tools pay!
			with keeps
			> "x"
			> "one"
			turns 1
			asks ficc_1
			> "two"
			> -ficc_1 "three"
			sent tool: 1→"Tool call invocation rejected." / user: "one" / user: "two" / user: "three"
			> "four"
			sent user: "four"`,
		"a message supersedes": `
			model 1=pay() | "ok"
			tools pay!
			with keeps supersede
			> "x"
			> "one"
			sent tool: 1→"GONE" / user: "one"`,
		"an error of the model loses no message that waits": `
			model 1=pay() | fails | "ok"
			tools pay!
			with keeps
			> "pay"
			> "by the way"
			> +ficc_1
			error the model is away
			>
			sent tool: 1→"did pay" / user: "by the way"`,
		"a result of an unknown call": `
			model "ok"
			with keeps
			> "hi" | =no:1
			refused no unknown_request
			sent user: "hi"`,
	})
}

func TestHostedRequests(t *testing.T) {
	playScenarios(t, map[string]string{
		"answers go back together": `
			model "?" r1=hosted 1=pay() r2=hosted 2=look() | "ok" | "more"
			tools pay! look
			> "x"
			asks r1 ficc_1 r2
			ran look
			> +r1 %r2 +r9
			refused r2 other_call; r9 unknown_request
			turns 1
			open ficc_1 r2
			> -r2
			> +ficc_1
			pairs ?r1, ?r2, !yes r1, !no r2
			ran look pay
			> "y"
			pairs ?r1, ?r2, !yes r1, !no r2`,
		"answers go back to a service that keeps the history": `
			model "?" r1=hosted 1=pay() r2=hosted 2=look() | "ok" | "more"
			tools pay! look
			with keeps
			> "x"
			> +r1
			> -r2
			> +ficc_1
			sent tool: 1→"did pay" 2→"did look" / user: r1!true r2!false
			> "y"
			pairs`,
		"the plan allows": `
			model r1=hosted | "ok"
			decide allow
			> "x"
			> +r1
			pairs ?r1, !yes r1`,
		"the plan denies": `
			model r1=hosted | "ok" | "forwarded!"
			decide deny r
			> "x"
			pairs ?r1, !no r1
			events denied call-r1
			> +r1 "hi"
			refused r1 closed_request`,
		"the plan denies by now": `
			model r1=hosted | "ok"
			decide ask r
			> "wipe"
			decide deny r
			> +r1
			pairs ?r1, !no r1`,
		"superseded": `
			model r1=hosted s=data w=consent | "ok"
			with supersede
			> "x"
			> "y"
			pairs ?r1, ?s, ?w, !no r1, !no s, !no w`,
		"an error of the model keeps the answer": `
			model r1=hosted | fails | "ok" | "more"
			> "x"
			> +r1
			error the model is away
			>
			pairs ?r1, !yes r1`,
		"a late answer is not forwarded": `
			model r1=hosted | "ok" | "forwarded!"
			> "wipe"
			> -r1
			> +r1 "hi"
			refused r1 closed_request
			pairs ?r1, !no r1`,
		"a late answer is not forwarded to a service that keeps the history": `
			model r1=hosted | "ok" | "forwarded!"
			with keeps
			> "wipe"
			> -r1
			> +r1 "hi"
			refused r1 closed_request
			pairs`,
		"an id of the service again": `
			model r=hosted | r=hosted | "ok" | "end"
			> "x"
			> -r
			> +r
			> "y"
			pairs ?r, !no r, ?r, !yes r`,
		"they make no sibling wait": `
			model r1=hosted 1=look()
			tools look
			with wrap
			> "go"
			asks r1
			ran look`,
	})
}

func TestDeclaredTools(t *testing.T) {
	playScenarios(t, map[string]string{
		"results of the caller": `
			model 1=theirs({"a":1}) 2=look() 3=pay() 4=theirs() | "ok"
			tools theirs? look pay!
			> "x"
			told assistant: 1=theirs({"a":1}) ficc_3?[3=pay()] 4=theirs()
			> =1:"one" | =3:"forged" | =1:"twice"
			refused 3 unknown_request; 1 unknown_request
			told assistant: ficc_3?[3=pay()] 4=theirs()
			> +ficc_3
			turns 1
			ran look pay
			> =4:null
			joined user: "x" / assistant: 1=theirs({"a":1}) 2=look() 3=pay() 4=theirs()
			/ tool: 1→"one" 2→"did look" 3→"did pay" 4→null`,
		"one that needs approval": `
			model 1=theirs() | "ok"
			tools theirs?!
			> "x"
			> =1:"done"
			refused 1 unknown_request
			> +ficc_1
			told assistant: 1=theirs()
			> =1:"done"
			sent user: "x" / assistant: 1=theirs() / tool: 1→"done"`,
		"two calls of one id are told apart": `
			model 1=ui({"n":1}) 1=ui({"n":2}) | "ok"
			tools ui?
			with keeps
			> "x"
			> =1:1 =1.2:2
			refused
			turns 2`,
		"a call of an id that another batch uses": `
			model 1=pay() | 1=ui() | "ok"
			tools ui? pay!
			> "x"
			> "y"
			> =1:1
			refused`,
	})
}
