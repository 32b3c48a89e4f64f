package value_test

import (
	"fmt"

	"github.com/assent-dev/assent/value"
)

func ExampleParse() {
	_, err := value.Parse([]byte(`{"amount":1,"amount":20000}`), value.Limits{})
	fmt.Println(err)
	// Output: line 1, column 13: duplicate key "amount" (first at column 2)
}

func ExampleShape_Scan() {
	var places value.ShapeBuilder
	amount := places.Add("order", "amount")
	shape := places.Build()

	var sc value.Scratch
	err := shape.Scan([]byte(`{"order":{"amount":1e3}}`), value.Limits{}, &sc)
	fmt.Println(sc.Slots[amount].Num.Cmp(value.IntNum(1000)), err)
	// Output: 0 <nil>
}

func ExampleValue_AppendCanonical() {
	v, _ := value.Parse([]byte(`{"to": "x", "amount": 1.50, "id": 9007199254740993}`), value.Limits{})
	fmt.Printf("%s\n", v.AppendCanonical(nil))
	// Output: {"amount":1.5,"id":9007199254740993,"to":"x"}
}
