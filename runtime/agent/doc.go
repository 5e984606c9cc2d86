// Package agent runs one turn: model, tools, model, until an answer.
//
// It knows no transport, no provider and no store: a [Model] answers, [Tools] are
// listed and called, and a [Turn] takes what is said. What it says are the events of
// package event; who keeps the thread sends the first and the last one, and results
// once they are durable.
//
// # A round
//
// One request to the model and the calls that it asks for are a round, and a step of
// the run. The text that comes with calls is a message of its own, whose id is the
// parent of the calls. Each call gets one result, in the order of the calls:
//
//   - A tool that only the client has is handed back: it gets no result here, the run
//     ends as a success, and the next run brings the answer. Where the server has a tool
//     of that name, the server's wins and a warning says so. Calls of the server's tools
//     that stand in the same round are carried out before.
//   - Calls of tools are carried out at the same time if all of the round are of tools
//     that say they only read, else one after the other.
//   - A tool that waits for a person ([tool.AskError]) is not carried out: the run ends
//     with a question about it. Calls behind it may rely on it, so of them only those
//     that only read are carried out, and those of a tool that asked before are asked
//     about too. Beside a call of the client's nobody can be asked: such a call is
//     refused, and the model may make it again.
//   - What is no JSON object, what the tools refuse, and what a tool failed with is told
//     to the model as {"error":{"code","message","hint"}}, and the run goes on.
//
// # What ends a run
//
// An answer; a question; calls that are the client's; and failures, each with a code: a
// round too many, tokens or money used up, a model that failed or said nothing, an
// error of the tools that package tool does not know, a panic, and two rounds in a row
// of which every call found the tools unavailable. One such round is told to the model:
// a tool that takes its process down may not end a run that uses others.
//
// # What is durable, and when
//
// A round ends with one commit. If it has a call of a tool that may change something
// there is one before it as well, so that a crash leaves a trace of what may have been
// done. Nothing is carried out twice: what has no result after a crash never gets one.
//
// A question carries its call, with the arguments that were shown, and is kept with the
// thread. Only what is kept is carried out, at most once, by the run that finds it
// approved; a payload that does not say {"approved":true} never is an approval.
//
// # Goroutines
//
// All happens on the goroutine that calls Run, but calls at the same time, which have
// one each. These recover, and end before Run returns: a Model and Tools must return
// soon after their context ends.
package agent
