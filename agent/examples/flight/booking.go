package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/approval/info"
)

const (
	seatForm = `{"type":"object","title":"Your seat","properties":{` +
		`"seat":{"type":"string","title":"Seat","enum":["3A","12C","27F"],` +
		`"enumNames":["3A, window","12C, aisle","27F, window at the back"]},` +
		`"bags":{"type":"integer","title":"Bags","minimum":0,"maximum":3,"default":1}},"required":["seat"]}`
	freeText = `{"type":"string","maxLength":200}`
)

// ticket is the result of a trip.
type ticket struct {
	Flight string `json:"flight"`
	To     string `json:"to"`
	Seat   string `json:"seat"`
	Bags   int    `json:"bags"`
	Price  int    `json:"price"`
	Note   string `json:"note,omitempty"`
}

// booking returns the agent: a program that asks for the seat and for consent to the price at the
// same time, then for a free text, and then books. It runs from its beginning each time, so it
// must do the same things each time.
func booking(to, dir string, store agent.ThreadStore) agent.Agent {
	return agent.NewFlow(agentID, agent.FlowConfig{Store: store}, func(ctx context.Context, f *agent.Flow) error {
		t := ticket{Flight: "TP 531", To: to, Price: 249}
		picked := f.Data(ctx, "seat", "Which seat do you want?", json.RawMessage(seatForm), &t)
		agreed := f.Approve(
			ctx, "price", fmt.Sprintf("Book %s to %s for %d EUR?", t.Flight, t.To, t.Price),
			info.Item{Label: "Why this one", Text: "It is the last direct flight on that day."},
			info.Item{Label: "Fares", Link: "https://fares.example.com/TP531"},
		)
		if no := errors.Join(noOf(picked), noOf(agreed)); no != nil {
			f.Say("Nothing is booked: " + no.Error())
			return nil
		}
		if err := errors.Join(picked, agreed); err != nil { // includes agent.ErrWaiting
			return err
		}
		err := f.Data(ctx, "note", "Anything that the airline should know?", json.RawMessage(freeText), &t.Note)
		if err != nil && noOf(err) == nil {
			return err
		}

		if err := issue(dir, t); err != nil {
			return err
		}
		f.Say(fmt.Sprintf("Booked: %s to %s, seat %s, bags: %d, %d EUR.", t.Flight, t.To, t.Seat, t.Bags, t.Price))
		return nil
	})
}

// noOf returns the error if it means that the person said no, and nil otherwise.
func noOf(err error) error {
	if errors.Is(err, agent.ErrDeclined) {
		return err
	}
	return nil
}

// issue writes the ticket of a trip. There is one ticket for each destination, and writing it
// twice has the same result. So a process may end in the middle.
func issue(dir string, t ticket) error {
	text, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("write the ticket: %w", err)
	}
	file := filepath.Join(dir, "ticket-"+filepath.Base(t.To)+".json")
	err = os.WriteFile(file+".new", append(text, '\n'), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("issue the ticket: %w", err)
	}
	return nil
}
