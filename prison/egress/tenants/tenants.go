// Package tenants knows domains of large providers, somewhere below which each tenant has names of its own.
package tenants

import "strings"

// domains maps each domain to a public suffix below it. The domains are not public suffixes themselves, so a list of those does not show
// what they have below them.
var domains = map[string]string{
	"amazonaws.com":          "s3.amazonaws.com",
	"amazonaws.com.cn":       "execute-api.cn-north-1.amazonaws.com.cn",
	"amazoncognito.com":      "auth.eu-west-1.amazoncognito.com",
	"awsapprunner.com":       "eu-west-1.awsapprunner.com",
	"azurecontainer.io":      "eastus.azurecontainer.io",
	"customer-oci.com":       "x.customer-oci.com",
	"digitaloceanspaces.com": "ams3.digitaloceanspaces.com",
	"fastly.net":             "freetls.fastly.net",
	"linode.com":             "members.linode.com",
	"linodeobjects.com":      "us-east-1.linodeobjects.com",
	"linodeusercontent.com":  "ip.linodeusercontent.com",
	"on.aws":                 "lambda-url.eu-west-1.on.aws",
	"oraclecloudapps.com":    "x.oraclecloudapps.com",
	"ovh.net":                "x.hosting.ovh.net",
	"platform.sh":            "eu.platform.sh",
	"railway.app":            "up.railway.app",
	"render.com":             "app.render.com",
	"sagemaker.aws":          "notebook.eu-west-1.sagemaker.aws",
	"scw.cloud":              "s3.fr-par.scw.cloud",
	"usgovcloudapi.net":      "blob.core.usgovcloudapi.net",
	"vultrobjects.com":       "ewr1.vultrobjects.com",
	"windows.net":            "blob.core.windows.net",
}

// Above returns the domain of the list that a name is or is below, such as "amazonaws.com"; empty if there is none.
func Above(name string) string {
	for more := true; more; _, name, more = strings.Cut(name, ".") {
		if domains[name] != "" {
			return name
		}
	}
	return ""
}
