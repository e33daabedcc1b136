// Renders a Helm chart without helm, with the libraries Helm uses: Go's templates, and sprig from the Debian packages
// golang-go, golang-github-masterminds-sprig-dev and golang-k8s-sigs-yaml-dev.
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run render-chart.go CHART VALUES.yaml
//
// Prints {"template": "text"} as JSON, including NOTES.txt. The release is named orders. It supports the parts of Helm
// that the chart uses: include, fail, required, toYaml, charts/ and Subcharts. No hooks, no dependency conditions, no lookup,
// no Files, and values.schema.json is ignored.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

type scope struct {
	name, text string
	context    object
}

func main() {
	if len(os.Args) != 3 {
		stop(fmt.Errorf("usage: render-chart CHART VALUES.yaml"))
	}
	given := readYaml(os.Args[2])
	var scopes []scope
	collect(os.Args[1], "", given, &scopes)

	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	for _, each := range scopes {
		_, err := all.New(each.name).Parse(each.text)
		stop(err)
	}
	rendered := map[string]string{}
	for _, each := range scopes {
		if strings.HasPrefix(filepath.Base(each.name), "_") {
			continue
		}
		var text strings.Builder
		stop(all.ExecuteTemplate(&text, each.name, each.context))
		rendered[each.name] = strings.ReplaceAll(text.String(), "<no value>", "")
	}
	stop(json.NewEncoder(os.Stdout).Encode(rendered))
}

// Reads a chart and those below charts/, and adds their templates, each with its rendering context.
func collect(directory, parent string, given object, scopes *[]scope) object {
	about := readYaml(filepath.Join(directory, "Chart.yaml"))
	values := merged(readYaml(filepath.Join(directory, "values.yaml")), given)
	name := filepath.Join(parent, fmt.Sprint(about["name"]))
	context := object{
		"Values":  values,
		"Release": object{"Name": "orders", "Namespace": "shop", "Service": "Helm", "IsInstall": true, "Revision": 1},
		"Chart":   object{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
	}
	below := object{}
	children, err := filepath.Glob(filepath.Join(directory, "charts", "*", "Chart.yaml"))
	stop(err)
	for _, child := range children {
		key := fmt.Sprint(readYaml(child)["name"])
		own, _ := values[key].(object)
		context := collect(filepath.Dir(child), filepath.Join(name, "charts"), own, scopes)
		below[key] = context
		values[key] = context["Values"]
	}
	context["Subcharts"] = below
	templates := filepath.Join(directory, "templates")
	stop(filepath.Walk(templates, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		relative, _ := filepath.Rel(directory, path)
		*scopes = append(*scopes, scope{filepath.Join(name, relative), string(text), context})
		return err
	}))
	return context
}

// Merges values over defaults; mappings are merged, and null removes a key.
func merged(under, over object) object {
	whole := object{}
	for key, value := range under {
		whole[key] = value
	}
	for key, value := range over {
		before, isBefore := whole[key].(object)
		after, isAfter := value.(object)
		switch {
		case value == nil:
			delete(whole, key)
		case isBefore && isAfter:
			whole[key] = merged(before, after)
		default:
			whole[key] = value
		}
	}
	return whole
}

func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env")
	delete(known, "expandenv")
	known["include"] = func(name string, context interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, context)
		return text.String(), err
	}
	known["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	known["fail"] = func(message string) (string, error) { return "", fmt.Errorf("%s", message) }
	return known
}

func readYaml(file string) object {
	text, err := os.ReadFile(file)
	stop(err)
	value := object{}
	if err := yaml.Unmarshal(text, &value); err != nil {
		stop(fmt.Errorf("%s: %w", file, err))
	}
	return value
}

func stop(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
