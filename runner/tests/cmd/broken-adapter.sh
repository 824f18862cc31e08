# An adapter whose client cannot be opened; what it writes here is its SDK's own fault.
while read -r line; do
  id=${line#*\"id\":}
  id=${id%%,*}
  case $line in
    *'"initialize"'*) body='"result":{"protocolVersion":1,"sdk":{"name":"broken","version":"1"},"capabilities":["sync"]}' ;;
    *'"openClient"'*) body='"error":{"code":-32603,"message":"no way"}' ;;
    *) body='"result":null' ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$body}"
done
